/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON on standard output. */
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_text.h"

void json_string(const char *text)
{
	json_text_write(stdout, text);
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
