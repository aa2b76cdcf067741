/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes for people, in steps of 1,024. */
#pragma once

#include <stdint.h>

#define SIZE_TEXT_BYTES 32

/* "0", "512K", "64M", "1.5G", "139.8G": one digit behind the point where it says something. */
void size_print(uint64_t bytes, char *ret_text);
