/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a size and as a number: what is accepted is what another reader of digits makes of it. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "tests/fuzz/fuzz.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

struct reading {
	bool is_digits; /* one or more, and at most a unit behind them, and with it a point and digits */
	unsigned shift;
	bool has_letter;
	bool fits;
	uint64_t digits, value;
	long double part; /* bytes behind the point, exact to some of them */
};

static struct reading read_slowly(const char *text)
{
	size_t count = strspn(text, "0123456789"), more = 0;
	struct reading r = {.is_digits = count > 0, .fits = true};
	const char *letters = "kKmMgGtT", *letter, *rest = text + count;
	long double part = 0, step = 1;
	unsigned __int128 value = 0;

	for (size_t i = 0; i < count; i++) {
		value = value * 10 + (unsigned)(text[i] - '0');
		if (value > UINT64_MAX) {
			r.fits = false;
			value = UINT64_MAX;
		}
	}
	r.digits = (uint64_t)value;
	if (*rest == '.') {
		more = strspn(rest + 1, "0123456789");
		for (size_t i = 0; i < more && i < 15; i++)
			part += (rest[1 + i] - '0') * (step /= 10);
		r.is_digits &= more > 0;
		rest += 1 + more;
	}
	if (*rest && (letter = strchr(letters, *rest))) {
		static const char *const ends[] = {"", "b", "i", "ib"};

		r.has_letter = true;
		r.shift = 10 * (unsigned)((letter - letters) / 2 + 1);
		r.is_digits &=
			strcasecmp(rest + 1, ends[0]) == 0 || strcasecmp(rest + 1, ends[1]) == 0 ||
			strcasecmp(rest + 1, ends[2]) == 0 || strcasecmp(rest + 1, ends[3]) == 0;
	} else if (*rest || more) {
		r.is_digits = false;
	}
	value <<= r.shift;
	if (value > UINT64_MAX)
		r.fits = false;
	r.value = (uint64_t)value;
	r.part = part * (long double)(UINT64_C(1) << r.shift);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint64_t value = UNTOUCHED, number = UNTOUCHED;
	struct reading r;
	char *text = malloc(size + 1);
	int e;

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	r = read_slowly(text);
	e = parse_size(text, &value);
	if (r.is_digits && r.fits && !(r.has_letter && r.digits == 0 && r.part < 2)) {
		FUZZ_CHECK(e == 0 && value >= r.value);
		FUZZ_CHECK((long double)(value - r.value) - r.part < 1 &&
			   r.part - (long double)(value - r.value) < 1.01L);
	} else if (r.is_digits && r.fits && r.part > 0) {
		/* About a byte: which side of it is a matter of the last digit. */
		FUZZ_CHECK(e == PARSE_E_NOT_A_SIZE || (e == 0 && value <= 2));
	} else {
		FUZZ_CHECK(e == PARSE_E_NOT_A_SIZE || e == PARSE_E_TOO_LARGE);
		FUZZ_CHECK(e != PARSE_E_TOO_LARGE || !r.fits);
		FUZZ_CHECK(value == UNTOUCHED);
		FUZZ_CHECK(*parse_advice(e));
	}
	e = parse_u64(text, 1000, &number);
	if (e == 0)
		FUZZ_CHECK(r.is_digits && !r.has_letter && number == r.digits && number <= 1000);
	else
		FUZZ_CHECK(number == UNTOUCHED);
	free(text);
	return 0;
}
