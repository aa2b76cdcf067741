/* SPDX-License-Identifier: Apache-2.0 */
/* A device's UUID as text. */
#include "gpu/uuid.h"

#include <string.h>

void uuid_format(const CUuuid *uuid, char ret_text[UUID_TEXT_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char *at = ret_text;

	memcpy(at, "GPU-", 4);
	at += 4;
	for (int i = 0; i < 16; i++) {
		unsigned char byte = (unsigned char)uuid->bytes[i];

		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[byte >> 4];
		*at++ = digits[byte & 15];
	}
	*at = '\0';
}
