/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a container's slice has lost its last process: told beside its share (region/ended.h), so that the process that a
 * kubelet starts there some seconds later is not charged for the time in between.
 *
 * Of the region only the locks are asked. Nothing of it is read, so nothing that a tenant writes counts.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"
#include "node/container.h"

enum container_life { CONTAINER_UNKNOWN, CONTAINER_LIVES, CONTAINER_ENDED };

struct container_end {
	char key[CONTAINER_KEY_BYTES];
	char region[CONTAINER_PATH_BYTES];
	int fd; /* of the region; -1: there is none */
	dev_t device;
	ino_t inode;
	enum container_life life;
};

/* Of a container's region, which may not be there yet. -ENAMETOOLONG. */
int container_end_init(const struct container_place *place, const struct container *container,
	struct container_end *ret_end) MUST_CHECK;
void container_end_deinit(struct container_end *end);

/* Opens the region, also where its name has another file by now. */
void container_end_open(struct container_end *end);

/*
 * Looks whether a process of the slice lives, and tells its end in shares/KEY where the last one has gone since the look
 * before. What was told by another before the first look stays: it is nearer to the end. -errno where it could not be
 * told, which the next look tries again.
 */
int container_end_look(const char *shares, struct container_end *end) MUST_CHECK;
