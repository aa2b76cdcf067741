/* SPDX-License-Identifier: Apache-2.0 */
/* ADDRESS:PORT, as a command line names where to listen. */
#include "net/address.h"

#include <string.h>

#include "base/parse.h"

bool address_parse(const char *text, char ret_address[ADDRESS_BYTES], uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	if (!colon || parse_u64(colon + 1, UINT16_MAX, &port))
		return false;
	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	if (length >= ADDRESS_BYTES)
		return false;
	memcpy(ret_address, text, length);
	strcpy(ret_address + length, "");
	if (!length)
		strcpy(ret_address, "0.0.0.0");
	*ret_port = (uint16_t)port;
	return true;
}
