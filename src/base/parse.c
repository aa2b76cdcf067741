/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and whole numbers as people write them. */
#include "base/parse.h"

#include <string.h>

/* Reads digits from *text on; returns how many, or -1 where the value does not fit. */
static int digits(const char **text, uint64_t *ret_value)
{
	uint64_t value = 0;
	int count = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++, count++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return -1;
	}
	*ret_value = value;
	return count;
}

static int suffix_shift(char c)
{
	switch (c | 0x20) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	case 't':
		return 40;
	default:
		return -1;
	}
}

/* Reads the unit: a letter of kmgt, with "i", "iB" or "B" behind it; -1 where it is none. */
static int unit_shift(const char *text)
{
	int shift = suffix_shift(*text);

	if (shift < 0)
		return -1;
	text++;
	if ((*text | 0x20) == 'i')
		text++;
	if ((*text | 0x20) == 'b')
		text++;
	return *text == '\0' ? shift : -1;
}

/*
 * The digits behind a point, as bytes of a unit, rounded down. Fifteen digits say more than bytes of any unit can, and
 * those behind them nothing.
 */
static int read_fraction(const char **text, int *ret_shift, uint64_t *ret_bytes)
{
	uint64_t value = 0, scale = 1;
	unsigned count = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++, count++)
		if (count < 15) {
			value = value * 10 + (uint64_t)(**text - '0');
			scale *= 10;
		}
	*ret_shift = unit_shift(*text);
	if (count == 0 || *ret_shift < 0)
		return PARSE_E_NOT_A_SIZE;
	*ret_bytes = (uint64_t)(((unsigned __int128)value << *ret_shift) / scale);
	return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t value, part = 0;
	int count = digits(&text, &value), shift;

	if (count < 0)
		return PARSE_E_TOO_LARGE;
	if (count == 0)
		return PARSE_E_NOT_A_SIZE;
	if (*text == '\0') {
		*ret_bytes = value;
		return 0;
	}
	shift = unit_shift(text);
	if (*text == '.') {
		text++;
		if (read_fraction(&text, &shift, &part) != 0)
			return PARSE_E_NOT_A_SIZE;
	}
	if (shift < 0 || (value == 0 && part == 0))
		return PARSE_E_NOT_A_SIZE;
	if (value > UINT64_MAX >> shift)
		return PARSE_E_TOO_LARGE;
	/* The part is less than one unit, so it is below the lowest bit of the shifted value. */
	*ret_bytes = (value << shift) + part;
	return 0;
}

int parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value;
	int count = digits(&text, &value);

	if (count < 0)
		return PARSE_E_TOO_LARGE;
	if (count == 0 || *text != '\0')
		return PARSE_E_NOT_A_NUMBER;
	if (value > max)
		return PARSE_E_TOO_LARGE;
	*ret_value = value;
	return 0;
}

bool parse_switch(const char *text, bool *ret_switch)
{
	static const char *const words[] = {
		"true", "True", "TRUE", "t", "T", "1", "false", "False", "FALSE", "f", "F", "0"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*ret_switch = i < ARRAY_SIZE(words) / 2;
			return true;
		}
	return false;
}

bool parse_is_on(const char *text)
{
	bool is_on;

	return text && parse_switch(text, &is_on) && is_on;
}

const char *parse_advice(int outcome)
{
	switch (outcome) {
	case PARSE_E_NOT_A_SIZE:
		return "a number with k, m, g or t behind it is right, in steps of 1,024: 512m, "
		       "2.5g, 8GiB; or a whole number of bytes";
	case PARSE_E_NOT_A_NUMBER:
		return "a whole number is right";
	case PARSE_E_TOO_LARGE:
		return "the number is too large";
	default:
		return "";
	}
}
