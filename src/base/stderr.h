/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor 2 of a process that may be another program's: what is written there harms none.
 *
 * A line that would have to wait, or that nobody reads any more, is dropped, and no signal comes of it. Nothing about the process is
 * changed for longer than the call.
 */
#pragma once

#include <stddef.h>

/*
 * Remembers what descriptor 2 is now, in the life of a program that does not know of us. What is there later may be the program's
 * data: a file that it has opened after it closed 2. So from then on only what is the same still is written to, or, where it is
 * another one, a terminal, a pipe's end for writing, and a file that is written to at its end alone.
 */
void stderr_remember(void);

/* Writes the line, or drops it. errno is not kept. */
void stderr_put(const char *line, size_t bytes);
