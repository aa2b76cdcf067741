/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON on standard output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A string (base/json_text.h). */
void json_string(const char *text);

/* The beginning of a member: its key and what stands before its value. */
void json_key(const char *key);

/* A whole member and the comma behind it; null where the text is empty, or the number not known. */
void json_text(const char *key, const char *text);
void json_number(const char *key, uint64_t number, bool is_known);
