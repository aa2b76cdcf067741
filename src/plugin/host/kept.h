/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugin keeps of each container it has prepared: a small JSON file on a file system that outlives a restart of
 * the machine, written by rename. All else on the host is made from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "base/file.h"
#include "node/container.h"

#define KEPT_POD_BYTES	   40
#define KEPT_SPACE_BYTES   64  /* a namespace's name */
#define KEPT_NAME_BYTES	   254 /* a pod's */
#define KEPT_VERSION_BYTES 64

struct kept {
	char pod_uid[KEPT_POD_BYTES];
	/* what the kubelet calls it; "": not known, as of one that an earlier version has kept */
	char pod_space[KEPT_SPACE_BYTES], pod_name[KEPT_NAME_BYTES];
	char version[KEPT_VERSION_BYTES]; /* of the library that is mounted */
	char boot[FILE_BOOT_BYTES];	  /* of the machine, when its files were made last */
	struct container container;
	int64_t wanted_s; /* when it was written, or touched last; not in it */
};

/* The folder of such files, open and locked: one change at a time, whatever number of plugins there is. */
struct kept_folder {
	int lock_fd, folder_fd;
};

/* clang-format off */
#define KEPT_FOLDER_NULL {-1, -1}
/* clang-format on */

/* Makes the folder where it is missing. -EAGAIN where another has it for 5 s; -errno; err is set. */
int kept_open(const char *state, struct kept_folder *ret_folder, struct err *err) MUST_CHECK;
void kept_close(struct kept_folder *folder);

/* "<pod UID>_<container>", where both are such as Kubernetes has; -EINVAL. */
int kept_key(
	const char *pod_uid, const char *container, char ret_key[CONTAINER_KEY_BYTES]) MUST_CHECK;

/* -ENOENT where there is none, -EBADMSG where it is broken. */
int kept_read(const struct kept_folder *folder, const char *key, struct kept *ret_kept) MUST_CHECK;

/* Whether nothing is in it, which nobody has written. */
bool kept_is_empty(const struct kept_folder *folder, const char *key);

/* It is on the disk, or with a list when what is added to that is. */
int kept_write(const struct kept_folder *folder, const struct kept *kept,
	struct folder_later *later) MUST_CHECK;

/* Its container is still wanted: as if it had been written now. */
int kept_touch(const struct kept_folder *folder, const char *key) MUST_CHECK;
int kept_remove(const struct kept_folder *folder, const char *key) MUST_CHECK;

/* Calls what for each, until one is not 0, which it returns. kept is NULL where the file is broken. */
int kept_each(const struct kept_folder *folder,
	int (*what)(void *context, const char *key, const struct kept *kept),
	void *context) MUST_CHECK;
