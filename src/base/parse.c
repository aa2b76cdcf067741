/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and whole numbers as people write them. */
#include "base/parse.h"

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

int parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t value;
	int count = digits(&text, &value), shift;

	if (count < 0)
		return PARSE_E_TOO_LARGE;
	if (count == 0)
		return PARSE_E_NOT_A_SIZE;
	if (*text == '\0') {
		*ret_bytes = value;
		return 0;
	}
	shift = suffix_shift(*text);
	if (shift < 0 || text[1] != '\0' || value == 0)
		return PARSE_E_NOT_A_SIZE;
	if (value > UINT64_MAX >> shift)
		return PARSE_E_TOO_LARGE;
	*ret_bytes = value << shift;
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

const char *parse_advice(int outcome)
{
	switch (outcome) {
	case PARSE_E_NOT_A_SIZE:
		return "a whole number of bytes is right, or one with k, m, g or t behind it, like "
		       "512m or 8g";
	case PARSE_E_NOT_A_NUMBER:
		return "a whole number is right";
	case PARSE_E_TOO_LARGE:
		return "the number is too large";
	default:
		return "";
	}
}
