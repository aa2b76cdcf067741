/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: where a command line says to listen, and who calls. */
#include "net/address.h"

#include <arpa/inet.h>
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

bool address_make(const char *text, uint16_t port, union address *ret_address)
{
	union address address = {.six = {.sin6_port = 0}};

	if (inet_pton(AF_INET, text, &address.four.sin_addr) == 1) {
		address.four.sin_family = AF_INET;
		address.four.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &address.six.sin6_addr) == 1) {
		address.six.sin6_family = AF_INET6;
		address.six.sin6_port = htons(port);
	} else {
		return false;
	}
	*ret_address = address;
	return true;
}

bool address_is_of_this_host(const struct sockaddr *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	if (address->sa_family != AF_INET6)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return six->sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

void address_of_client(const struct sockaddr *address, char ret_text[ADDRESS_CLIENT_BYTES])
{
	ret_text[0] = '\0';
	if (address->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, ret_text,
			ADDRESS_CLIENT_BYTES);
	} else if (address->sa_family == AF_INET6) {
		struct in6_addr network = ((const struct sockaddr_in6 *)address)->sin6_addr;

		if (!IN6_IS_ADDR_V4MAPPED(&network))
			memset(network.s6_addr + 8, 0, 8);
		inet_ntop(AF_INET6, &network, ret_text, ADDRESS_CLIENT_BYTES);
	}
}
