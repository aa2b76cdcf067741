/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files and from other processes, for a terminal: nothing in it may move the cursor. */
#pragma once

/* A byte that is safe to write; '?' for control bytes. */
static inline char text_harmless(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
}

/* The same of a whole text. */
static inline void text_make_harmless(char *text)
{
	for (; *text; text++)
		*text = text_harmless(*text);
}
