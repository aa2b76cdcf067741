/* SPDX-License-Identifier: Apache-2.0 */
/* Text in UTF-8, of which any byte may be wrong. */
#pragma once

#include <stdint.h>

#include "base/bits.h"

/*
 * Reads the character at text, which ends with a zero byte. Returns how many bytes it takes, 1 to 4, or 0 where
 * they are no character: a byte alone, a form that is too long, half of a pair of UTF-16, above U+10FFFF.
 */
unsigned utf8_read(const char *text, uint32_t *ret_character) MUST_CHECK;
