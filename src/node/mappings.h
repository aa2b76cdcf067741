/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a process has mapped, as /proc tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

struct mapping {
	uint64_t start, end, offset, inode;
	unsigned device_major,
		device_minor; /* of the file, as the kernel tells in all such lists */
	bool is_shared, is_shared_and_written, is_run;
	char *path; /* in the reader's text; "" for none */
};

struct mappings {
	char *text, *at; /* all of them, and the next line */
};

#define MAPPINGS_NULL        \
	(struct mappings)    \
	{                    \
		.text = NULL \
	}

/* Begins; the caller closes, whatever comes. -errno, as of look_read(). */
int mappings_open(pid_t pid, struct mappings *ret_mappings) MUST_CHECK;

/* The next one; false at the end. */
bool mappings_next(struct mappings *mappings, struct mapping *ret_mapping);

/* Fit for MAPPINGS_NULL. */
void mappings_close(struct mappings *mappings);

/* Whether the process has the file mapped, to write to it, that this process has mapped at that address. */
bool mappings_has_file_at(pid_t pid, const void *address);
