/* SPDX-License-Identifier: Apache-2.0 */
/* A text of names with commas between, as users write it into annotations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct name {
	const char *text; /* no end of its own */
	size_t length;	  /* without the blanks around it; it may be 0 */
};

/* The next name; *list is moved behind it, and is NULL after the last. A text without a comma is one name. */
bool name_next(const char **list, struct name *ret_name);

bool name_is(const struct name *name, const char *text);

/* Whether the text has nothing but blanks. NULL is blank. */
bool names_are_blank(const char *list);

/* Whether one of the names is the text. */
bool names_have(const char *list, const char *text);

/* Whether one of the names, if it is not empty, occurs in the text, in letters of any case (ASCII). */
bool names_occur_in(const char *list, const char *text);
