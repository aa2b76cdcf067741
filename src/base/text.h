/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from files and from other processes, for a terminal.
 *
 * Nothing in it may move the cursor, begin a sequence of the terminal's, or change the direction of what stands behind
 * it. Valid UTF-8 stays as it is; each byte that is none becomes a '?', and so does each character that controls.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Makes a text harmless where it stands; it never grows. */
void text_make_harmless(char *text);

/* The same, and each character that is not ASCII becomes a '?', so that a byte is a column. */
void text_make_ascii(char *text);

/* Writes a text as text_make_harmless() leaves it. */
void text_put(FILE *out, const char *text);

/* Copies as much of a text as has room; the rest is cut. */
void text_copy(char *to, size_t size, const char *from);

/* The characters of a harmless text. */
size_t text_width(const char *text);
