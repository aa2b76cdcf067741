/* SPDX-License-Identifier: Apache-2.0 */
/* Text in UTF-8, of which any byte may be wrong. */
#include "base/utf8.h"

/* How many bytes a character takes that begins so; 0: none does. */
static unsigned length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

unsigned utf8_read(const char *text, uint32_t *ret_character)
{
	static const uint32_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned length = length_of((unsigned char)*text);
	uint32_t character = (unsigned char)*text & first_bits[length];

	for (unsigned i = 1; i < length; i++) {
		unsigned char next = (unsigned char)text[i];

		/* The ending zero byte is none of these. */
		if ((next & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (next & 0x3f);
	}
	if (length == 0 || character < least[length] || character > 0x10ffff ||
		(character >= 0xd800 && character <= 0xdfff))
		return 0;
	*ret_character = character;
	return length;
}
