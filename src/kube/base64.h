/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 text (RFC 4648, with padding), as Kubernetes writes bytes. */
#pragma once

#include <stddef.h>

#include "base/bits.h"

enum {
	_BASE64_E_SUCCESS = 0,
	BASE64_E_MALFORMED, /* another character, or a length that is none */
};

/* The bytes with a zero behind them; the caller frees them. White space is skipped. BASE64_E_* or -ENOMEM. */
int base64_decode(const char *text, char **ret_bytes) MUST_CHECK;

/* The text, in one line; the caller frees it. NULL: no memory. */
char *base64_encode(const char *bytes, size_t count);
