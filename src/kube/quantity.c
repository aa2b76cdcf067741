/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as Kubernetes writes them. */
#include "kube/quantity.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define DIGITS_MAX 18 /* that surely fit into 63 bits */

/* digits * 10^exponent, before a binary suffix. */
struct decimal {
	int64_t digits;
	int exponent;
	bool is_negative;
};

static bool read_digits(const char **text, struct decimal *ret)
{
	bool is_behind_point = false, has_digits = false;
	int count = 0;

	for (;; (*text)++) {
		char c = **text;

		if (c == '.' && !is_behind_point) {
			is_behind_point = true;
			continue;
		}
		if (c < '0' || c > '9')
			return has_digits;
		has_digits = true;
		if (is_behind_point && c == '0' &&
			strspn(*text, "0") == strspn(*text, "0123456789"))
			continue; /* zeros at the end of a fraction */
		if ((ret->digits || c != '0') && ++count > DIGITS_MAX)
			return false;
		ret->digits = ret->digits * 10 + (c - '0');
		ret->exponent -= is_behind_point;
	}
}

/* "e3" or "E-3". */
static bool read_exponent(const char *text, int *ret_exponent)
{
	char *end;
	long value;

	if ((*text != 'e' && *text != 'E') || !text[1])
		return false;
	value = strtol(text + 1, &end, 10);
	if (*end || value < -100 || value > 100)
		return false;
	*ret_exponent = (int)value;
	return true;
}

static bool read_suffix(const char *suffix, int *ret_exponent, int *ret_shift)
{
	static const struct {
		char text[3];
		int8_t exponent, shift;
	} known[] = {
		{"", 0, 0},
		{"n", -9, 0},
		{"u", -6, 0},
		{"m", -3, 0},
		{"k", 3, 0},
		{"M", 6, 0},
		{"G", 9, 0},
		{"T", 12, 0},
		{"P", 15, 0},
		{"E", 18, 0},
		{"Ki", 0, 10},
		{"Mi", 0, 20},
		{"Gi", 0, 30},
		{"Ti", 0, 40},
		{"Pi", 0, 50},
		{"Ei", 0, 60},
	};

	*ret_exponent = *ret_shift = 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(suffix, known[i].text)) {
			*ret_exponent = known[i].exponent;
			*ret_shift = known[i].shift;
			return true;
		}
	return read_exponent(suffix, ret_exponent);
}

/* A fraction of 2^shift is whole where its denominator, a power of ten, divides it: for each 2 in it there is one. */
static bool scale(struct decimal decimal, int shift, int64_t *ret_value)
{
	int64_t value = decimal.digits;

	for (; shift; shift--)
		if (decimal.exponent < 0 && !(value % 5) && value) {
			value = value / 5; /* times 2, by 10 */
			decimal.exponent++;
		} else if (__builtin_mul_overflow(value, 2, &value)) {
			return false;
		}
	for (; value && decimal.exponent > 0; decimal.exponent--)
		if (__builtin_mul_overflow(value, 10, &value))
			return false;
	for (; value && decimal.exponent < 0; decimal.exponent++) {
		if (value % 10)
			return false;
		value /= 10;
	}
	*ret_value = decimal.is_negative ? -value : value;
	return true;
}

bool quantity_parse(const char *text, int64_t *ret_value)
{
	struct decimal decimal = {.is_negative = *text == '-'};
	int exponent, shift;

	text += *text == '-' || *text == '+';
	if (!read_digits(&text, &decimal) || !read_suffix(text, &exponent, &shift))
		return false;
	decimal.exponent += exponent;
	return scale(decimal, shift, ret_value);
}

bool quantity_of(const json_t *resources, const char *name, int64_t *ret_value)
{
	const json_t *value = json_object_get(resources, name);

	if (json_is_integer(value)) {
		*ret_value = json_integer_value(value);
		return true;
	}
	return json_is_string(value) && quantity_parse(json_string_value(value), ret_value);
}
