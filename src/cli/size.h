/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people and from them, in steps of 1,024. */
#pragma once

#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"

#define SIZE_TEXT_BYTES 32

/* "0", "512K", "64M", "1.5G", "139.8G": one digit behind the point where it says something. */
void size_print(uint64_t bytes, char *ret_text);

/*
 * The value of --memory: a quota above 0, or SHARE_UNLIMITED for "unlimited", the share file's own word. 0,
 * or COMMAND_E_USAGE with err set.
 */
int size_read_quota(const char *text, uint64_t *ret_bytes, struct err *err) MUST_CHECK;
