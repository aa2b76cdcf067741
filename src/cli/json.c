/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON on standard output. */
#include "cli/json.h"

#include <inttypes.h>

#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void json_write_string(FILE *out, const char *text)
{
	uint32_t character;
	unsigned length;

	putc('"', out);
	for (; *text; text += length ? length : 1) {
		length = utf8_read(text, &character);
		if (length == 0)
			fputs(REPLACEMENT, out);
		else if (character == '"' || character == '\\')
			fprintf(out, "\\%c", *text);
		else if (character < ' ' || (character >= 0x7f && character <= 0x9f))
			fprintf(out, "\\u%04x", (unsigned)character);
		else
			fwrite(text, 1, length, out);
	}
	putc('"', out);
}

void json_string(const char *text)
{
	json_write_string(stdout, text);
}

void json_key(const char *key)
{
	json_string(key);
	fputs(": ", stdout);
}

void json_text(const char *key, const char *text)
{
	json_key(key);
	if (*text)
		json_string(text);
	else
		fputs("null", stdout);
	fputs(", ", stdout);
}

void json_number(const char *key, uint64_t number, bool is_known)
{
	json_key(key);
	if (is_known)
		printf("%" PRIu64, number);
	else
		fputs("null", stdout);
	fputs(", ", stdout);
}
