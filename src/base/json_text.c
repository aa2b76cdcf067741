/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a string of JSON. */
#include "base/json_text.h"

#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void write_escape(FILE *out, const char *before, char last)
{
	putc('\\', out);
	fputs(before, out);
	putc(last, out);
}

/* Below 256. */
static void write_control(FILE *out, uint32_t character)
{
	static const char digits[] = "0123456789abcdef";
	const char before[] = {'u', '0', '0', digits[character / 16], '\0'};

	write_escape(out, before, digits[character % 16]);
}

void json_text_write(FILE *out, const char *text)
{
	uint32_t character;
	unsigned length;

	putc('"', out);
	for (; *text; text += length ? length : 1) {
		length = utf8_read(text, &character);
		if (length == 0)
			fputs(REPLACEMENT, out);
		else if (character == '"' || character == '\\')
			write_escape(out, "", *text);
		else if (character < ' ' || (character >= 0x7f && character <= 0x9f))
			write_control(out, character);
		else
			fwrite(text, 1, length, out);
	}
	putc('"', out);
}

void json_text_write_member(FILE *out, const char *key, const char *text)
{
	putc('"', out);
	fputs(key, out);
	fputs("\":", out);
	json_text_write(out, text);
	putc(',', out);
}
