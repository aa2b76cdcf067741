/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The containers of this node that have a region: HOOK/containers/<pod UID>_<container>/<any>.cache, as the device plugin makes
 * them, HAMi's or ours.
 */
#pragma once

#include "monitor/hami.h"
#include "node/view.h"

#define SCAN_NAME_BYTES 384

struct scan_container {
	char uid[64], name[SCAN_NAME_BYTES]; /* of the pod; of the container */
	struct hami_figures figures;
	int fd; /* the region, open for reading and writing */
	bool is_ours;
	struct view view; /* where it is ours */
};

struct scan {
	struct scan_container *list;
	size_t count;
};

/*
 * Reads them all. Folders that are none, and files that are no region, are passed over, the latter with a word in the
 * log. 0, also where there is no such folder; -ENOMEM.
 */
int scan_read(const char *hook, const struct inventory *devices, struct scan *ret_scan) MUST_CHECK;

/* Fit for a zeroed one. */
void scan_clear(struct scan *scan);
