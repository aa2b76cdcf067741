/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the text form that Prometheus reads. */
#include "base/exposition.h"

#include "base/utf8.h"

#define REPLACEMENT  "\xef\xbf\xbd" /* U+FFFD */
#define WHOLE_MOST   0x1p53
#define NUMBER_BYTES 32 /* sign, 17 digits, point, exponent, space, line's end */

static void write_line(FILE *out, const char *what, const char *name, const char *text)
{
	fputs(what, out);
	fputs(name, out);
	putc(' ', out);
	fputs(text, out);
	putc('\n', out);
}

void exposition_write_head(FILE *out, const struct exposition_family *family)
{
	write_line(out, "# HELP ", family->name, family->help);
	write_line(out, "# TYPE ", family->name, family->type);
}

/* The bytes that stand in a value as they are. Nearly all of them do, and a scrape has some hundred thousand. */
static size_t plain_bytes(const char *value)
{
	size_t length = 0;

	while (value[length] >= ' ' && value[length] < 0x7f && value[length] != '"' &&
		value[length] != '\\')
		length++;
	return length;
}

static void write_value(FILE *out, const char *value)
{
	uint32_t character;
	unsigned length;

	for (;; value += length ? length : 1) {
		size_t plain = plain_bytes(value);

		fwrite_unlocked(value, 1, plain, out);
		value += plain;
		if (!*value)
			return;
		length = utf8_read(value, &character);
		if (length == 0)
			fputs_unlocked(REPLACEMENT, out);
		else if (character == '\n')
			fputs_unlocked("\\n", out);
		else {
			if (character == '"' || character == '\\')
				putc_unlocked('\\', out);
			fwrite_unlocked(value, 1, length, out);
		}
	}
}

void exposition_write(FILE *out, const char *name, const struct exposition_label *labels,
	size_t label_count, double value)
{
	char number[NUMBER_BYTES], before = '{';

	fputs_unlocked(name, out);
	for (size_t i = 0; i < label_count; i++) {
		if (!*labels[i].value)
			continue;
		putc_unlocked(before, out);
		fputs_unlocked(labels[i].name, out);
		fputs_unlocked("=\"", out);
		write_value(out, labels[i].value);
		putc_unlocked('"', out);
		before = ',';
	}
	if (before == ',')
		putc_unlocked('}', out);
	/* most are whole, and printing those so takes a tenth */
	if (value >= 0 && value < WHOLE_MOST && value == (double)(uint64_t)value)
		snprintf(number, sizeof(number), " %llu\n", (unsigned long long)value);
	else
		snprintf(number, sizeof(number), " %.17g\n", value);
	fputs_unlocked(number, out);
}

const char *exposition_number(long long number, char text[EXPOSITION_NUMBER_BYTES])
{
	snprintf(text, EXPOSITION_NUMBER_BYTES, "%lld", number);
	return text;
}
