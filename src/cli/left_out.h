/* SPDX-License-Identifier: Apache-2.0 */
/* What was not looked at, of what users have made. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "node/sites.h"

/*
 * Slices that were found and are not shown: a process has a lease on the accounting file or the share file, the former is another
 * user's or broken, or the latter cannot be read.
 */
struct left_out {
	unsigned lease_count;
	pid_t holder;	/* of the first; 0 where nothing tells */
	char path[256]; /* of its file */
	struct sites_some strangers;
	struct sites_some shares; /* their folders */
	struct sites_some broken;
};

/* Counts the slice where view_read() said so, and says whether. */
bool left_out_note(struct left_out *left, const struct site *site, int outcome);

unsigned left_out_count(const struct sites *sites, const struct left_out *left);

/*
 * A line on stderr for each user with more than is looked at, and one for each other reason: it might never answer, others may write to
 * its folder, there is a lease on it, it is another user's, it is broken, its share file cannot be read.
 */
void left_out_tell(const struct sites *sites, const struct left_out *left);

/* The same as metrics, for Prometheus. */
void left_out_write(FILE *out, const struct sites *sites, const struct left_out *left);
