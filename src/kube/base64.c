/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 text: four characters are three bytes. */
#include "kube/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static bool decode(const char *text, char *bytes)
{
	uint32_t bits = 0;
	unsigned count = 0, padding = 0;

	for (; *text; text++) {
		if (strchr(" \t\r\n", *text))
			continue;
		if (*text == '=') {
			padding++;
			count++;
			continue;
		}
		if (padding || value_of(*text) < 0)
			return false;
		bits = bits << 6 | (uint32_t)value_of(*text);
		if (count++ % 4)
			*bytes++ = (char)(bits >> (6 - 2 * ((count - 1) % 4)));
	}
	*bytes = 0;
	return !(count % 4) && padding <= 2;
}

int base64_decode(const char *text, char **ret_bytes)
{
	char *bytes = malloc(strlen(text) / 4 * 3 + 4);

	if (!bytes)
		return -ENOMEM;
	if (!decode(text, bytes)) {
		free(bytes);
		return BASE64_E_MALFORMED;
	}
	*ret_bytes = bytes;
	return 0;
}

char *base64_encode(const char *bytes, size_t count)
{
	char *text = malloc((count + 2) / 3 * 4 + 1), *at = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < count; i += 3) {
		uint32_t bits = 0;

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (i + k < count ? (unsigned char)bytes[i + k] : 0);
		for (unsigned k = 0; k < 4; k++)
			*at++ = i + k <= count ? digits[bits >> (18 - 6 * k) & 63] : '=';
	}
	*at = '\0';
	return text;
}
