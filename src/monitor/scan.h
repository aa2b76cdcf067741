/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers of this node that have a region: HOOK/containers/<pod UID>_<container>/<any>.cache, as the device plugin makes
 * them, HAMi's or ours.
 */
#pragma once

#include "monitor/hami.h"
#include "node/view.h"
#include "policy/share.h"

#define SCAN_UID_BYTES	64
#define SCAN_NAME_BYTES 384
#define SCAN_PATH_BYTES 1024

struct scan_place {
	const char *hook;
	const char *shares; /* the folder with the share file of each container */
};

struct scan_container {
	char uid[SCAN_UID_BYTES], name[SCAN_NAME_BYTES]; /* of the pod; of the container */
	struct share
		*share; /* what root has granted; NULL: there is none, as of HAMi's containers */
	struct hami_figures figures;
	char path[SCAN_PATH_BYTES];
	int fd; /* the region, open for reading and writing; -1: it cannot be read, and there are no figures */
	struct view *view; /* NULL: it was not read, or is none of ours */
};

struct scan {
	struct scan_container *list;
	size_t count, capacity;
};

/*
 * Reads them all; has_views: and what of those that are ours HAMi's readers do not know. Folders that are none are passed over,
 * and so are those without a share whose file is no region, with a word in the log. 0, also where there is no such folder; -ENOMEM.
 */
int scan_read(const struct scan_place *place, const struct inventory *devices, bool has_views,
	struct scan *ret_scan) MUST_CHECK;

/* Reads what of a container HAMi's readers do not know, where it is ours. */
void scan_read_view(struct scan_container *container, const struct inventory *devices);

/* NULL: there is none. */
struct scan_container *scan_find(const struct scan *scan, const char *uid, const char *name);

/* What the name of a container's folder says; false: no plugin makes such. */
bool scan_split_name(
	const char *folder, char ret_uid[SCAN_UID_BYTES], char ret_name[SCAN_NAME_BYTES]);

/* Fit for a zeroed one. */
void scan_clear(struct scan *scan);
