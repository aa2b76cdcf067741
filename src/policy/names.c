/* SPDX-License-Identifier: Apache-2.0 */
/* A text of names with commas between. */
#include "policy/names.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

bool name_next(const char **list, struct name *ret_name)
{
	const char *from = *list, *end;

	if (!from)
		return false;
	end = strchrnul(from, ',');
	*list = *end ? end + 1 : NULL;
	while (from < end && is_blank(*from))
		from++;
	while (end > from && is_blank(end[-1]))
		end--;
	*ret_name = (struct name){from, (size_t)(end - from)};
	return true;
}

bool name_is(const struct name *name, const char *text)
{
	return !strncmp(name->text, text, name->length) && !text[name->length];
}

/* Whether what stands there is a whole name of the list. */
static bool is_name(const char *list, const char *from, const char *end)
{
	while (from > list && is_blank(from[-1]))
		from--;
	while (is_blank(*end))
		end++;
	return (from == list || from[-1] == ',') && (!*end || *end == ',');
}

bool names_are_blank(const char *list)
{
	while (list && is_blank(*list))
		list++;
	return !list || !*list;
}

/* The list may be long, and is searched for each of thousands of devices. */
bool names_have(const char *list, const char *text)
{
	size_t length = strlen(text);

	if (!list || !length || strchr(text, ',') || is_blank(*text) || is_blank(text[length - 1]))
		return false;
	for (const char *at = list; (at = strstr(at, text)); at++)
		if (is_name(list, at, at + length))
			return true;
	return false;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool begins_with(const char *text, const struct name *name)
{
	for (size_t i = 0; i < name->length; i++)
		if (lower(text[i]) != lower(name->text[i]))
			return false;
	return true;
}

bool names_occur_in(const char *list, const char *text)
{
	size_t length = strlen(text);
	struct name name;

	while (name_next(&list, &name))
		for (size_t i = 0; name.length && i + name.length <= length; i++)
			if (begins_with(text + i, &name))
				return true;
	return false;
}
