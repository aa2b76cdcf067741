/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a region is called that was found as a process's mapping.
 *
 * A name and a label stay as long as the region does, whatever processes have it mapped: no PID is in them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "node/here.h"
#include "node/site_list.h"

#define SITE_NAME_BYTES 256

struct site_label {
	char name[SITE_NAME_BYTES];   /* for people */
	char region[SITE_PATH_BYTES]; /* where it is, for people; nothing is opened by it */
};

/*
 * Of a region of the path that the process has for it. Its path here where it has one; else, in a container, ID:PATH; else as site_label_by_file(). The
 * container is by its control group. Lines of mounts are counted as in here_find().
 */
void site_label_make(const struct there *there, unsigned *lines, unsigned most_lines,
	struct site_label *ret_label);

/* Where no path tells it from all others: by the file itself, and by a path that has no more than its name; NULL: none has that. */
void site_label_by_file(const struct there *there, struct site_label *ret_label);
