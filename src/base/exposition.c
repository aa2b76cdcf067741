/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the text form that Prometheus reads. */
#include "base/exposition.h"

#include <stdbool.h>

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

static bool has_label(const struct exposition_label *labels, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (*labels[i].value)
			return true;
	return false;
}

void exposition_write_labels(FILE *out, const struct exposition_label *labels, size_t label_count)
{
	bool is_first = true;

	for (size_t i = 0; i < label_count; i++) {
		if (!*labels[i].value)
			continue;
		if (!is_first)
			putc_unlocked(',', out);
		fputs_unlocked(labels[i].name, out);
		fputs_unlocked("=\"", out);
		write_value(out, labels[i].value);
		putc_unlocked('"', out);
		is_first = false;
	}
}

static void write_number(FILE *out, double value)
{
	char number[NUMBER_BYTES];

	/* most are whole, and printing those so takes a tenth */
	if (value >= 0 && value < WHOLE_MOST && value == (double)(uint64_t)value)
		snprintf(number, sizeof(number), " %llu\n", (unsigned long long)value);
	else
		snprintf(number, sizeof(number), " %.17g\n", value);
	fputs_unlocked(number, out);
}

void exposition_write(FILE *out, const char *name, const struct exposition_label *labels,
	size_t label_count, double value)
{
	bool has_labels = has_label(labels, label_count);

	fputs_unlocked(name, out);
	if (has_labels)
		putc_unlocked('{', out);
	exposition_write_labels(out, labels, label_count);
	if (has_labels)
		putc_unlocked('}', out);
	write_number(out, value);
}

void exposition_write_with(
	FILE *out, const char *name, const char *labels, const char *more, double value)
{
	fputs_unlocked(name, out);
	putc_unlocked('{', out);
	fputs_unlocked(labels, out);
	fputs_unlocked(more, out);
	putc_unlocked('}', out);
	write_number(out, value);
}

const char *exposition_number(long long number, char text[EXPOSITION_NUMBER_BYTES])
{
	snprintf(text, EXPOSITION_NUMBER_BYTES, "%lld", number);
	return text;
}
