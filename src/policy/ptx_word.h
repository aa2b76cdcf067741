/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a text in PTX, one after the other.
 *
 * After a failure every word is the end, so a reader need not ask at each step; it must not loop at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_kind {
	PTX_END,
	PTX_NAME,      /* k, %rd1, $L, _ */
	PTX_DIRECTIVE, /* .global */
	PTX_NUMBER,    /* 0x10, 010, 0b1, 1U, 1.5, 0f3F800000 */
	PTX_STRING,
	PTX_SIGN, /* one of any other character, or an operator of two */
};

struct ptx_words {
	const char *text;
	size_t size, at; /* at: behind the current word */
	enum ptx_kind kind;
	const char *word; /* the current one, with its quotes or its dot */
	size_t length;
	bool is_bad;
};

/* Begins with the first word as the current one. The size may be PTX_TO_ZERO (ptx.h). */
void ptx_begin(struct ptx_words *w, const char *text, size_t size);
void ptx_next(struct ptx_words *w);

/* The text is not understood: it ends here. */
void ptx_fail(struct ptx_words *w);

/* What the current word is. */
bool ptx_is(const struct ptx_words *w, const char *word);

/* Goes on if the current word is this one; and fails if it is not. */
bool ptx_take(struct ptx_words *w, const char *word);
void ptx_expect(struct ptx_words *w, const char *word);

/* A whole number, and a constant expression, from 0 to 2^63 - 1. Fails on anything else, and returns 0. */
uint64_t ptx_number(struct ptx_words *w);
uint64_t ptx_expression(struct ptx_words *w);
