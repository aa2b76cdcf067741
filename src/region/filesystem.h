/* SPDX-License-Identifier: Apache-2.0 */
/* The file system that a region lies on, and what it is known to do with locks. */
#pragma once

#include <stdbool.h>

struct filesystem {
	unsigned magic; /* statfs(2) */
	const char *name;
	bool is_remote;	  /* other machines may have it mounted, too */
	bool is_plain;	  /* to open a file for reading does nothing else, and asks no program */
	bool drops_locks; /* a mapping keeps the file below, and not the locks of the one above */
};

/* Of an open file; "unknown" where it is none of ours. */
const struct filesystem *filesystem_of(int fd);

/* By the type that stands in mountinfo. */
bool filesystem_is_plain_type(const char *type);

/* Where the path leads, or of the nearest folder above where nothing is there yet. */
const struct filesystem *filesystem_at(const char *path);
bool filesystem_is_read_only(const char *path);
