/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: where a command line says to listen, and who calls. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_BYTES 64

/* ":PORT" is every IPv4 address, "[::1]:PORT" one of IPv6. False where the text is none. */
bool address_parse(const char *text, char ret_address[ADDRESS_BYTES], uint16_t *ret_port);

/* As a socket takes it; the family says which. */
union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* "127.0.0.1", "::1". False where the text is no IP address. */
bool address_make(const char *text, uint16_t port, union address *ret_address);

/* Whether who has it is on this host. */
bool address_is_of_this_host(const struct sockaddr *address);

#define ADDRESS_CLIENT_BYTES INET6_ADDRSTRLEN

/* The client that limits count for: its address; of IPv6 its network, of which a client may have any address; else "". */
void address_of_client(const struct sockaddr *address, char ret_text[ADDRESS_CLIENT_BYTES]);
