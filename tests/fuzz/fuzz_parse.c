/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a size and as a number: what is accepted is what another reader of digits makes of it. */
#include <stdbool.h>
#include <string.h>

#include "base/parse.h"
#include "tests/fuzz/fuzz.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

struct reading {
	bool is_digits; /* one or more, and at most one letter of kmgt behind them */
	unsigned shift;
	bool has_letter;
	bool fits;
	uint64_t digits, value;
};

static struct reading read_slowly(const char *text)
{
	size_t length = strlen(text), count = strspn(text, "0123456789");
	struct reading r = {.is_digits = count > 0, .fits = true};
	const char *letters = "kKmMgGtT", *letter;
	unsigned __int128 value = 0;

	for (size_t i = 0; i < count; i++) {
		value = value * 10 + (unsigned)(text[i] - '0');
		if (value > UINT64_MAX) {
			r.fits = false;
			value = UINT64_MAX;
		}
	}
	r.digits = (uint64_t)value;
	if (length == count + 1 && (letter = strchr(letters, text[count]))) {
		r.has_letter = true;
		r.shift = 10 * (unsigned)((letter - letters) / 2 + 1);
	} else if (length != count) {
		r.is_digits = false;
	}
	value <<= r.shift;
	if (value > UINT64_MAX)
		r.fits = false;
	r.value = (uint64_t)value;
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
	if (r.is_digits && r.fits && !(r.has_letter && r.digits == 0)) {
		FUZZ_CHECK(e == 0 && value == r.value);
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
