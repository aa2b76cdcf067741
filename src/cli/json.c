/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON on standard output. */
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
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
