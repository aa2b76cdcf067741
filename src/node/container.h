/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files on the host that a container's slice consists of.
 *
 * All folders are root's and nobody else may write to them. A tenant has two kinds of files to write to, each mounted by
 * itself: its region and its turn records. So no name, link or folder is ever a tenant's, and what a tenant writes is
 * content that is read and checked, and never followed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "node/folder.h"
#include "policy/share.h"

#define CONTAINER_PATH_BYTES  512
#define CONTAINER_KEY_BYTES   104 /* "<pod UID>_<container>" */
#define CONTAINER_CACHE_BYTES 48  /* "<UUID>.cache" */

/* Absolute paths without white space, the same on the host and here. */
struct container_place {
	const char *
		hook; /* "/usr/local/vgpu": the library, ld.so.preload, and a folder with the region of each container */
	const char *shares; /* "/var/lib/cantaloupe/shares": a folder with the share file of each */
	const char *turns;  /* "/run/cantaloupe/turns": the turn records; "": there are no turns */
	const char *
		lock; /* "/var/lib/cantaloupe/vgpulock": an empty folder that HAMi's containers have; "": none */
};

struct container {
	char key[CONTAINER_KEY_BYTES];
	char cache[CONTAINER_CACHE_BYTES];
	struct share share; /* as it is for the container: its name, and its paths there */
};

/*
 * Makes what is missing of a container's files; what is there and right stays. is_new_boot: no process of before can
 * live, so its books are begun anew. The share is on the disk, or with a list when
 * what is added to that is. -errno with err set.
 */
int container_make(const struct container_place *place, const struct container *container,
	bool is_new_boot, struct folder_later *later, struct err *err) MUST_CHECK;

/* Where the container's region is on the host; -ENAMETOOLONG. */
int container_region_path(const struct container_place *place, const struct container *container,
	char ret_path[CONTAINER_PATH_BYTES]) MUST_CHECK;

/* Whether regions can be where they are to be: on a file system that keeps a process's locks. -errno with err set. */
int container_check_place(const struct container_place *place, struct err *err) MUST_CHECK;

/* Whether a process that has claimed a place in the container's region lives. */
bool container_is_running(const struct container_place *place, const struct container *container);

/*
 * What processes in the container's region hold of a device, and descriptors keep, by its books; 0 where no process has begun to use
 * it. What snapshot_read() says where they cannot be read.
 */
int container_held_bytes(const struct container_place *place, const struct container *container,
	const char *uuid, uint64_t *ret_bytes) MUST_CHECK;

/* Cuts files that the container's processes have made longer than any of that kind is. */
void container_trim(const struct container_place *place, const struct container *container);

/* Removes the container's files; what is not there is no failure. -errno with err set. */
int container_remove(const struct container_place *place, const struct container *container,
	struct err *err) MUST_CHECK;
