/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu cdi: a slice of a container, and whether what is mounted for it binds and harms nobody. */
#pragma once

#include "base/err.h"
#include "node/place.h"
#include "policy/share.h"

/*
 * In a container all that limits are made of is a mount in /etc, which is the image's own folder: a mount can neither be renamed nor
 * removed, nor can, on an overlay, a folder of the image. One that the runtime makes above a mount, as the image lacks it, can be renamed
 * with the mount in it, and the dynamic linker goes past a library that is not there (docs/decisions/0040).
 */
#define CONTAINER_SHARES  SHARE_SYSTEM_FOLDER
#define CONTAINER_LIBRARY SHARE_SYSTEM_LIBRARY
#define CONTAINER_PRELOAD SHARE_LIBRARY_LIST

struct cdi_slice {
	char folder[PLACE_BYTES], name[SHARE_NAME_BYTES];
	char region[PLACE_BYTES + SHARE_PATH_BYTES]; /* the file on the host; "": none */
	char books[SHARE_PATH_BYTES]; /* the folder that it is in; "": that of the share */
	struct share share;
};

/* What is mounted for all slices. */
struct cdi_library {
	char folder[PLACE_BYTES]; /* without links, as the list */
	char list[PLACE_BYTES];	  /* what the dynamic linker reads first */
};

/* Whether root or the caller owns the file or folder, nobody else may write to it, and all may read it. -EACCES with err set. */
int cdi_check_readable(const char *path, struct err *err) MUST_CHECK;

/*
 * Whether nobody else may put something else in the place of what is mounted, no container gets what limits are made of or another one's
 * folder, and the host's users cannot reach what containers write to. -errno with err set. Regions need not exist yet.
 */
int cdi_check(const struct cdi_slice *slices, int count, const struct cdi_library *library,
	struct err *err) MUST_CHECK;

/* The same of a region that was made since. */
int cdi_check_region(const struct cdi_slice *slice, struct err *err) MUST_CHECK;
