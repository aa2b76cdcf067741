/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and whole numbers as people write them; anything else is refused, never guessed at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

enum {
	_PARSE_E_SUCCESS = 0,
	PARSE_E_NOT_A_SIZE, /* empty, sign, fraction of a byte, unknown unit, or anything behind it */
	PARSE_E_NOT_A_NUMBER, /* likewise, where no suffix is allowed */
	PARSE_E_TOO_LARGE,    /* does not fit in 64 bits, or is above the given maximum */
};

/*
 * Parses a size: decimal digits, and a unit: k, m, g or t, alone or with "i", "iB" or "B" behind it (either
 * case; always steps of 1,024, as container runtimes have it). With a unit the number may have a point and digits behind
 * it; what is less than a byte is dropped. Nothing may stand before or behind. "0" is 0; zero with a unit is
 * refused, because it does not mean "no limit". Leading zeros do not make the number octal.
 */
int parse_size(const char *text, uint64_t *ret_bytes) MUST_CHECK;

/* Parses decimal digits up to max, nothing else. */
int parse_u64(const char *text, uint64_t max, uint64_t *ret_value) MUST_CHECK;

/* Reads a switch as Go's programs do: true, t or 1, and false, f or 0. False where it is none, and *ret_switch is untouched. */
bool parse_switch(const char *text, bool *ret_switch) MUST_CHECK;

/* Whether it is such a switch, and on; it may be NULL. */
bool parse_is_on(const char *text);

/* What would have been right, as the end of a sentence; for PARSE_E_*. */
const char *parse_advice(int outcome);
