/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files and from other processes, for a terminal. */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Control characters of ASCII and Latin 1, and those of Unicode that set lines, directions and nothing else. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

/* Copies the next character of *from; to may be where it stands. Returns the bytes that were written. */
static unsigned copy(char *to, const char **from, bool is_ascii)
{
	uint32_t character;
	unsigned length = utf8_read(*from, &character);

	if (length == 0 || is_control(character) || (is_ascii && length > 1)) {
		*from += length ? length : 1;
		*to = '?';
		return 1;
	}
	memmove(to, *from, length);
	*from += length;
	return length;
}

static void clean(char *text, bool is_ascii)
{
	const char *from = text;

	while (*from)
		text += copy(text, &from, is_ascii);
	*text = '\0';
}

void text_make_harmless(char *text)
{
	clean(text, false);
}

void text_make_ascii(char *text)
{
	clean(text, true);
}

void text_put(FILE *out, const char *text)
{
	char one[4];

	while (*text)
		fwrite(one, 1, copy(one, &text, false), out);
}

size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void text_copy(char *to, size_t size, const char *from)
{
	size_t length = strnlen(from, size - 1);

	memcpy(to, from, length);
	to[length] = '\0';
}
