/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON on standard output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A string. Valid UTF-8 stays as it is, a byte that is none becomes U+FFFD, and control characters are written as
 * escapes, those of Latin 1 too: what is shown on a terminal is harmless there.
 */
void json_write_string(FILE *out, const char *text);
void json_string(const char *text);

/* The beginning of a member: its key and what stands before its value. */
void json_key(const char *key);

/* A whole member and the comma behind it; null where the text is empty, or the number not known. */
void json_text(const char *key, const char *text);
void json_number(const char *key, uint64_t number, bool is_known);
