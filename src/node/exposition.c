/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the text form that Prometheus reads. */
#include "node/exposition.h"

#include "base/utf8.h"

#define REPLACEMENT  "\xef\xbf\xbd" /* U+FFFD */
#define NUMBER_BYTES 32		    /* sign, 17 digits, point, exponent, space, line's end */

static void write_line(FILE *out, const char *what, const char *name, const char *text)
{
	fputs(what, out);
	fputs(name, out);
	putc(' ', out);
	fputs(text, out);
	putc('\n', out);
}

void exposition_write_head(FILE *out, const char *name, const char *help, const char *type)
{
	write_line(out, "# HELP ", name, help);
	write_line(out, "# TYPE ", name, type);
}

static void write_value(FILE *out, const char *value)
{
	uint32_t character;
	unsigned length;

	for (; *value; value += length ? length : 1) {
		length = utf8_read(value, &character);
		if (length == 0)
			fputs(REPLACEMENT, out);
		else if (character == '\n')
			fputs("\\n", out);
		else {
			if (character == '"' || character == '\\')
				putc('\\', out);
			fwrite(value, 1, length, out);
		}
	}
}

void exposition_write(FILE *out, const char *name, const struct exposition_label *labels,
	size_t label_count, double value)
{
	char number[NUMBER_BYTES], before = '{';

	fputs(name, out);
	for (size_t i = 0; i < label_count; i++) {
		if (!*labels[i].value)
			continue;
		putc(before, out);
		fputs(labels[i].name, out);
		fputs("=\"", out);
		write_value(out, labels[i].value);
		putc('"', out);
		before = ',';
	}
	if (before == ',')
		putc('}', out);
	snprintf(number, sizeof(number), " %.17g\n", value);
	fputs(number, out);
}
