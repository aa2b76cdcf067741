/* SPDX-License-Identifier: Apache-2.0 */
/* Any text for a terminal and as JSON: what is right stays, and nothing comes out that controls. */
#include <stdbool.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

/*
 * Another reader of UTF-8, by the table of well-formed byte sequences (Unicode 15.0, table 3-7). Returns the length of
 * the character at text, or 0.
 */
static unsigned read_slowly(const unsigned char *t, uint32_t *ret_character)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high, length;
	} rows[] = {{0x01, 0x7f, 0, 0, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned n = rows[i].length;

		if (t[0] < rows[i].first_low || t[0] > rows[i].first_high)
			continue;
		if (n > 1 && (t[1] < rows[i].second_low || t[1] > rows[i].second_high))
			continue;
		if ((n > 2 && (t[2] & 0xc0) != 0x80) || (n > 3 && (t[3] & 0xc0) != 0x80))
			continue;
		*ret_character =
			n == 1	 ? t[0]
			: n == 2 ? (t[0] & 0x1fu) << 6 | (t[1] & 0x3fu)
			: n == 3 ? (t[0] & 0xfu) << 12 | (t[1] & 0x3fu) << 6 | (t[2] & 0x3fu)
				 : (t[0] & 7u) << 18 | (t[1] & 0x3fu) << 12 | (t[2] & 0x3fu) << 6 |
					   (t[3] & 0x3fu);
		return n;
	}
	return 0;
}

static bool controls(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Directions and lines, which a terminal may obey. */
static bool leads_astray(uint32_t c)
{
	return c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

static void check_terminal(const char *text, const char *shown)
{
	size_t width = text_width(shown), left = strlen(shown);

	while (*text) {
		uint32_t was = 0, is = 0;
		unsigned length = read_slowly((const unsigned char *)text, &was);
		unsigned shown_length = read_slowly((const unsigned char *)shown, &is);

		FUZZ_CHECK(shown_length > 0 && shown_length <= left);
		FUZZ_CHECK(!controls(is) && !leads_astray(is));
		FUZZ_CHECK(is == '?' || (length && is == was));
		FUZZ_CHECK(length != 1 || controls(was) || is == was);
		text += length ? length : 1;
		shown += shown_length;
		left -= shown_length;
		width--;
	}
	FUZZ_CHECK(!*shown && width == 0);
}

/* The character that the JSON string goes on with; *at behind it. */
static uint32_t next_of_json(const char **at)
{
	uint32_t c = 0;
	unsigned length;

	if (**at != '\\') {
		length = read_slowly((const unsigned char *)*at, &c);
		FUZZ_CHECK(length > 0 && !controls(c) && c != '"');
		*at += length;
		return c;
	}
	if ((*at)[1] == '"' || (*at)[1] == '\\') {
		c = (unsigned char)(*at)[1];
		*at += 2;
		return c;
	}
	FUZZ_CHECK((*at)[1] == 'u' && strspn(*at + 2, "0123456789abcdef") >= 4);
	FUZZ_CHECK(sscanf(*at + 2, "%4x", &c) == 1);
	*at += 6;
	return c;
}

static void check_json(const char *text, const char *json, size_t size)
{
	const char *end = json + size - 1;

	FUZZ_CHECK(size >= 2 && *json == '"' && *end == '"');
	json++;
	while (*text) {
		uint32_t was = 0xfffd;
		unsigned length = read_slowly((const unsigned char *)text, &was);

		FUZZ_CHECK(json < end && next_of_json(&json) == was);
		text += length ? length : 1;
	}
	FUZZ_CHECK(json == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1), *shown = malloc(size + 1), *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);

	FUZZ_CHECK(text && shown && out);
	memcpy(text, bytes, size);
	text[size] = '\0';
	strcpy(shown, text);
	text_make_harmless(shown);
	check_terminal(text, shown);
	text_put(out, text);
	FUZZ_CHECK(fflush(out) == 0 && strcmp(written, shown) == 0);
	rewind(out);
	json_text_write(out, text);
	FUZZ_CHECK(fclose(out) == 0);
	check_json(text, written, length);
	strcpy(shown, text);
	text_make_ascii(shown);
	for (const char *c = shown; *c; c++)
		FUZZ_CHECK(*c >= ' ' && *c < 0x7f);
	free(written);
	free(shown);
	free(text);
	return 0;
}
