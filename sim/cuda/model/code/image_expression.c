/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions in PTX, as far as sizes of variables are written with them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/code/image.h"

static const char *read_choice(const char *at, uint64_t *ret_value);

static const char *skip(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

static const char *read_number(const char *at, uint64_t *ret_value)
{
	char *end;

	if (at[0] == '0' && (at[1] == 'b' || at[1] == 'B'))
		*ret_value = strtoull(at + 2, &end, 2);
	else
		*ret_value = strtoull(at, &end, 0);
	return *end == 'U' ? end + 1 : end;
}

static const char *read_value(const char *at, uint64_t *ret_value)
{
	char sign;

	at = skip(at);
	sign = *at;
	if (strncmp(at, "WARP_SZ", 7) == 0) {
		*ret_value = 32;
		return at + 7;
	}
	if (strncmp(at, "(.s64)", 6) == 0 || strncmp(at, "(.u64)", 6) == 0)
		return read_value(at + 6, ret_value);
	if (sign == '(') {
		at = skip(read_choice(at + 1, ret_value));
		return *at == ')' ? at + 1 : at;
	}
	if (sign == '\0' || !strchr("+-!~", sign))
		return read_number(at, ret_value);
	at = read_value(at + 1, ret_value);
	*ret_value = sign == '-'   ? -*ret_value
		     : sign == '!' ? !*ret_value
		     : sign == '~' ? ~*ret_value
				   : *ret_value;
	return at;
}

/* What binds closer stands further up. */
static const char *const levels[][5] = {{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="},
	{"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

static uint64_t apply(const char *sign, uint64_t a, uint64_t b)
{
	switch (sign[0]) {
	case '|':
		return sign[1] ? a || b : a | b;
	case '&':
		return sign[1] ? a && b : a & b;
	case '^':
		return a ^ b;
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '<':
		return sign[1] == '<' ? a << (b & 63) : sign[1] ? a <= b : a < b;
	case '>':
		return sign[1] == '>' ? a >> (b & 63) : sign[1] ? a >= b : a > b;
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	default:
		return b == 0 ? 0 : sign[0] == '/' ? a / b : a % b;
	}
}

/* The operator of this level at that place, or NULL. */
static const char *operator_at(const char *at, size_t level)
{
	for (int i = 0; i < 5 && levels[level][i]; i++) {
		const char *sign = levels[level][i];
		size_t length = strlen(sign);

		if (strncmp(at, sign, length) == 0 &&
			(length == 2 || (at[1] != at[0] && !(strchr("<>", at[0]) && at[1] == '='))))
			return sign;
	}
	return NULL;
}

static const char *read_level(const char *at, size_t level, uint64_t *ret_value)
{
	const char *sign;
	uint64_t other;

	if (level == LEVELS)
		return read_value(at, ret_value);
	at = skip(read_level(at, level + 1, ret_value));
	while ((sign = operator_at(at, level)) != NULL) {
		at = skip(read_level(at + strlen(sign), level + 1, &other));
		*ret_value = apply(sign, *ret_value, other);
	}
	return at;
}

static const char *read_choice(const char *at, uint64_t *ret_value)
{
	uint64_t yes, no;

	at = skip(read_level(at, 0, ret_value));
	if (*at != '?')
		return at;
	at = skip(read_choice(at + 1, &yes));
	at = skip(read_choice(at + (*at == ':'), &no));
	*ret_value = *ret_value ? yes : no;
	return at;
}

const char *image_read_expression(const char *at, uint64_t *ret_value)
{
	return skip(read_choice(at, ret_value));
}
