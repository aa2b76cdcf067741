/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and constant expressions of PTX.
 *
 * Values are 64 bits wide there, signed or not by rules of their own. Where every value on the way lies from 0 to
 * 2^63 - 1 these rules make no difference, and anything else is refused.
 */
#include <string.h>

#include "base/bits.h"
#include "policy/ptx_word.h"

/* Parentheses in parentheses. */
#define DEPTH_MOST 32

static uint64_t checked(struct ptx_words *w, uint64_t value, bool is_right)
{
	if (is_right && value <= INT64_MAX)
		return value;
	ptx_fail(w);
	return 0;
}

/* The digit's value; 255 where it is none. */
static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 255;
}

uint64_t ptx_number(struct ptx_words *w)
{
	const char *at = w->word, *end = at + w->length;
	bool is_right = w->kind == PTX_NUMBER;
	unsigned base = 10;
	uint64_t value = 0;

	if (is_right && w->length > 1 && end[-1] == 'U')
		end--;
	if (is_right && end - at > 1 && *at == '0') {
		base = at[1] == 'x' || at[1] == 'X' ? 16 : at[1] == 'b' || at[1] == 'B' ? 2 : 8;
		at += base == 8 ? 1 : 2;
		is_right = at < end;
	}
	for (; is_right && at < end; at++)
		is_right = digit(*at) < base && !__builtin_mul_overflow(value, base, &value) &&
			   !__builtin_add_overflow(value, digit(*at), &value);
	value = checked(w, value, is_right);
	ptx_next(w);
	return value;
}

static uint64_t read_ternary(struct ptx_words *w, unsigned depth);

static uint64_t read_primary(struct ptx_words *w, unsigned depth)
{
	uint64_t value;

	if (ptx_take(w, "WARP_SZ"))
		return 32;
	if (!ptx_take(w, "("))
		return ptx_number(w);
	value = read_ternary(w, depth + 1);
	ptx_expect(w, ")");
	return value;
}

/* Behind the parenthesis that begins a cast; false where it begins something else. */
static bool take_cast(struct ptx_words *w)
{
	struct ptx_words before = *w;

	if (ptx_take(w, "(") && (ptx_take(w, ".s64") || ptx_take(w, ".u64")) && ptx_take(w, ")"))
		return true;
	*w = before;
	return false;
}

static uint64_t read_unary(struct ptx_words *w, unsigned depth)
{
	if (depth > DEPTH_MOST)
		ptx_fail(w);
	if (w->kind == PTX_END) {
		ptx_fail(w);
		return 0;
	}
	if (ptx_take(w, "+"))
		return read_unary(w, depth + 1);
	if (ptx_take(w, "!"))
		return read_unary(w, depth + 1) == 0;
	if (ptx_take(w, "-"))
		return checked(w, 0, read_unary(w, depth + 1) == 0);
	if (ptx_take(w, "~"))
		return checked(w, ~read_unary(w, depth + 1), true);
	return take_cast(w) ? read_unary(w, depth + 1) : read_primary(w, depth);
}

/* A shift by as much as a value is wide is one of the things that are refused. */
static uint64_t apply(struct ptx_words *w, const char *sign, uint64_t a, uint64_t b)
{
	uint64_t product;

	switch (sign[0] + (sign[1] << 8)) {
	case '*':
		return checked(w, a * b, !__builtin_mul_overflow(a, b, &product));
	case '/':
		return b ? a / b : checked(w, 0, false);
	case '%':
		return b ? a % b : checked(w, 0, false);
	case '+':
		return checked(w, a + b, true);
	case '-':
		return checked(w, a - b, a >= b);
	case '<' + ('<' << 8):
		return checked(w, b < 63 ? a << b : 0, b < 63 && a << b >> b == a);
	case '>' + ('>' << 8):
		return checked(w, b < 63 ? a >> b : 0, b < 63);
	case '<':
		return a < b;
	case '>':
		return a > b;
	case '<' + ('=' << 8):
		return a <= b;
	case '>' + ('=' << 8):
		return a >= b;
	case '=' + ('=' << 8):
		return a == b;
	case '!' + ('=' << 8):
		return a != b;
	case '&':
		return a & b;
	case '^':
		return a ^ b;
	case '|':
		return a | b;
	case '&' + ('&' << 8):
		return a && b;
	default:
		return a || b;
	}
}

static const struct {
	char sign[3];
	unsigned char rank; /* the higher one goes first */
} operators[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9}, {"<<", 8}, {">>", 8},
	{"<", 7}, {">", 7}, {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6}, {"&", 5}, {"^", 4},
	{"|", 3}, {"&&", 2}, {"||", 1}};

static uint64_t read_binary(struct ptx_words *w, unsigned rank, unsigned depth)
{
	uint64_t value = read_unary(w, depth);

	for (unsigned i = 0; i < ARRAY_SIZE(operators); i++) {
		if (operators[i].rank < rank || !ptx_take(w, operators[i].sign))
			continue;
		value = apply(w, operators[i].sign, value,
			read_binary(w, operators[i].rank + 1u, depth + 1));
		i = UINT32_MAX; /* from the first one again */
	}
	return value;
}

static uint64_t read_ternary(struct ptx_words *w, unsigned depth)
{
	uint64_t value = read_binary(w, 1, depth), yes, no;

	if (!ptx_take(w, "?"))
		return value;
	yes = read_ternary(w, depth + 1);
	ptx_expect(w, ":");
	no = read_ternary(w, depth + 1);
	return value ? yes : no;
}

uint64_t ptx_expression(struct ptx_words *w)
{
	return read_ternary(w, 0);
}
