/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API server without what nobody here reads. */
#include "kube/prune.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Behind the quote that ends the text which begins here; NULL: none does. */
static const char *end_of_text(const char *at, const char *end)
{
	while (at < end) {
		const char *quote = memchr(at, '"', (size_t)(end - at)), *before = quote;

		if (!quote)
			return NULL;
		while (before > at && before[-1] == '\\')
			before--;
		at = quote + 1;
		if ((quote - before) % 2 == 0)
			return at;
	}
	return NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* Behind the list that begins here; NULL: it has no end. */
static const char *end_of_list(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end) {
		char c = *at++;

		if (c == '"') {
			at = end_of_text(at, end);
			if (!at)
				return NULL;
		} else if (c == '[' || c == '{') {
			depth++;
		} else if ((c == ']' || c == '}') && !--depth) {
			return at;
		}
	}
	return NULL;
}

static bool is_among(const char *key, size_t length, const char *const *keys)
{
	for (; *keys; keys++)
		if (strlen(*keys) == length && !memcmp(*keys, key, length))
			return true;
	return false;
}

/* The list behind a key that is among them, and its end; NULL: there is none. */
static const char *find_list(const char *key, const char *behind, const char *end,
	const char *const *keys, const char **ret_end)
{
	const char *at = skip_blanks(behind, end);

	if (at == end || *at != ':' || !is_among(key, (size_t)(behind - key) - 1, keys))
		return NULL;
	at = skip_blanks(at + 1, end);
	if (at == end || *at != '[')
		return NULL;
	*ret_end = end_of_list(at, end);
	return *ret_end ? at : NULL;
}

/* Writes the text without the lists, which is never longer than it was. What is no JSON stays none. */
static size_t copy(const char *text, size_t bytes, const char *const *keys, char *ret_copy)
{
	const char *at = text, *kept = text, *end = text + bytes;
	char *out = ret_copy;

	while ((at = memchr(at, '"', (size_t)(end - at)))) {
		const char *key = at + 1, *list, *list_end;

		at = end_of_text(key, end);
		if (!at)
			break;
		list = find_list(key, at, end, keys, &list_end);
		if (!list)
			continue;
		out = mempcpy(out, kept, (size_t)(list - kept));
		out = mempcpy(out, "[]", 2);
		at = kept = list_end;
	}
	out = mempcpy(out, kept, (size_t)(end - kept));
	return (size_t)(out - ret_copy);
}

json_t *prune_load(const char *text, size_t bytes, const char *const *unused)
{
	_cleanup_free_ char *rest = unused ? malloc(bytes + 1) : NULL;

	if (!rest)
		return json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);
	return json_loadb(rest, copy(text, bytes, unused, rest), JSON_ALLOW_NUL, NULL);
}
