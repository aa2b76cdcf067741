/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a string of JSON. */
#pragma once

#include <stdio.h>

/*
 * Valid UTF-8 stays as it is, a byte that is none becomes U+FFFD, and control characters are written as
 * escapes, those of Latin 1 too: what is shown on a terminal is harmless there.
 */
void json_text_write(FILE *out, const char *text);

/* A member of an object that is not its last: "key":"text", with the comma. The key is one of ours. */
void json_text_write_member(FILE *out, const char *key, const char *text);
