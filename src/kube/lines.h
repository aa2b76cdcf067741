/* SPDX-License-Identifier: Apache-2.0 */
/* Lines out of a stream that comes in pieces. */
#pragma once

#include <stddef.h>

#include "base/bits.h"

/* All zero: nothing has come. */
struct lines {
	char *part; /* the beginning of a line that has not ended */
	size_t bytes, room_bytes;
};

/* A line without its end, not empty, and for the time of the call. Not 0: lines_add() ends and returns it. */
typedef int lines_fn(void *context, const char *line, size_t bytes);

/* -EMSGSIZE where a line is longer than most_bytes, -ENOMEM, or what the function returned. */
int lines_add(struct lines *lines, const char *bytes, size_t count, size_t most_bytes,
	lines_fn *take, void *context) MUST_CHECK;

/* Forgets what has come. */
void lines_clear(struct lines *lines);
