/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, in words: a fixed buffer on the caller's stack, so that making an error cannot
 * fail. Filled where the cause is known, wrapped on the way up, printed once, in main.
 */
#pragma once

#include "base/bits.h"

struct err {
	char text[512];
};

/* clang-format off */
#define ERR_NULL {{0}}
/* clang-format on */

/* Sets the text (printf's formats) and returns -error, so that `return err_set(...)` reads well. */
int err_set(struct err *err, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "what: " before the text that is there. */
void err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
