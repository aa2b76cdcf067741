/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a text in PTX declares: its variables in the device's memory, and functions of the device's runtime.
 *
 * The text is read as the compiler of the driver reads it: word by word, with comments, strings, vectors, arrays of
 * several dimensions, several variables in one declaration, names with a count (x<100>), initialisers, constant
 * expressions, and declarations within functions. A text of which one word is not understood is not understood at
 * all. That includes whatever two readers might take for different things: a comment that ends in a backslash, an
 * expression that leaves the numbers from 0 to 2^63 - 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx {
	/* Most that variables take, with what alignment may add; UINT64_MAX where a sum does not fit. */
	uint64_t device_bytes;	/* .global and .const */
	uint64_t managed_bytes; /* those with the attribute .managed */
	bool has_heap;		/* calls malloc(), or launches kernels itself */
	bool has_printf;
};

/* The size of a text of which only its end in a zero is known. */
#define PTX_TO_ZERO SIZE_MAX

/* False where it is not understood wholly; *ret_ptx is set in any case. The text ends at its first zero, too. */
bool ptx_read(const char *text, size_t size, struct ptx *ret_ptx);

/* Whether the text has the word of managed variables anywhere, in a comment too: without it, it has none. */
bool ptx_names_managed(const char *text, size_t size);
