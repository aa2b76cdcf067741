/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and whole numbers as people write them; anything else is refused, never guessed at. */
#pragma once

#include <stdint.h>

#include "base/bits.h"

enum {
	_PARSE_E_SUCCESS = 0,
	PARSE_E_NOT_A_SIZE,   /* empty, sign, fraction, unknown suffix, or anything behind it */
	PARSE_E_NOT_A_NUMBER, /* likewise, where no suffix is allowed */
	PARSE_E_TOO_LARGE,    /* does not fit in 64 bits, or is above the given maximum */
};

/*
 * Parses a size: decimal digits and at most one of k, m, g, t (either case; steps of 1,024) with
 * nothing before or behind. "0" is 0; zero with a suffix is refused, because whoever writes it does
 * not mean "no limit". Leading zeros do not make the number octal.
 */
int parse_size(const char *text, uint64_t *ret_bytes) MUST_CHECK;

/* Parses decimal digits up to max, nothing else. */
int parse_u64(const char *text, uint64_t max, uint64_t *ret_value) MUST_CHECK;

/* What would have been right, as the end of a sentence; for PARSE_E_*. */
const char *parse_advice(int outcome);
