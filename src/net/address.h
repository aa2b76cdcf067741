/* SPDX-License-Identifier: Apache-2.0 */
/* ADDRESS:PORT, as a command line names where to listen. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_BYTES 64

/* ":PORT" is every IPv4 address, "[::1]:PORT" one of IPv6. False where the text is none. */
bool address_parse(const char *text, char ret_address[ADDRESS_BYTES], uint16_t *ret_port);
