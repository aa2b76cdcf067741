/* SPDX-License-Identifier: Apache-2.0 */
/* What kube-scheduler sends with a request. */
#include "scheduler/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define KEY "NodeNames"

/* A walk over the text, which ends with a zero. What is not plain is left to jansson. */
struct walk {
	const char *at, *end;
};

static void skip_blanks(struct walk *walk)
{
	while (*walk->at == ' ' || *walk->at == '\t' || *walk->at == '\n' || *walk->at == '\r')
		walk->at++;
}

static bool skip_char(struct walk *walk, char c)
{
	if (*walk->at != c)
		return false;
	walk->at++;
	return true;
}

/* A text without escapes, of ASCII alone. */
static bool skip_plain_text(struct walk *walk)
{
	if (!skip_char(walk, '"'))
		return false;
	while (*walk->at >= ' ' && *walk->at < 127 && *walk->at != '"' && *walk->at != '\\')
		walk->at++;
	return skip_char(walk, '"');
}

static bool skip_text(struct walk *walk)
{
	for (walk->at++; walk->at < walk->end && *walk->at != '"'; walk->at++)
		walk->at += *walk->at == '\\';
	return walk->at < walk->end && skip_char(walk, '"');
}

/* Up to the comma or the bracket behind it. */
static bool skip_value(struct walk *walk)
{
	size_t depth = 0;

	while (walk->at < walk->end) {
		char c = *walk->at;

		if (c == '"') {
			if (!skip_text(walk))
				return false;
			continue;
		}
		if (!depth && (c == ',' || c == '}' || c == ']'))
			return true;
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
		walk->at++;
	}
	return false;
}

/* A list of plain texts; *ret_count of them. */
static bool skip_names(struct walk *walk, size_t *ret_count)
{
	size_t count = 0;

	if (!skip_char(walk, '['))
		return false;
	do {
		skip_blanks(walk);
		if (!skip_plain_text(walk))
			return false;
		count++;
		skip_blanks(walk);
	} while (skip_char(walk, ','));
	*ret_count = count;
	return skip_char(walk, ']');
}

/* Where the list is in the outermost object; false: it is not there once, or not plain. */
static bool find_names(const char *body, size_t bytes, struct walk *ret_list, size_t *ret_count)
{
	struct walk walk = {body, body + bytes};
	struct walk list = {NULL, NULL};

	skip_blanks(&walk);
	if (!skip_char(&walk, '{'))
		return false;
	do {
		const char *key;

		skip_blanks(&walk);
		key = walk.at;
		if (!skip_plain_text(&walk))
			return false;
		if (!strncmp(key, "\"" KEY "\"", sizeof(KEY) + 1)) {
			skip_blanks(&walk);
			if (list.at || !skip_char(&walk, ':'))
				return false;
			skip_blanks(&walk);
			list.at = walk.at;
			if (!skip_names(&walk, ret_count))
				return false;
			list.end = walk.at;
			skip_blanks(&walk);
		} else if (!skip_value(&walk)) {
			return false;
		}
	} while (skip_char(&walk, ','));
	*ret_list = list;
	return list.at;
}

/* Each name ends where its quote was. */
static void take_names(char *text, struct arguments *arguments)
{
	char *rest = text;

	for (size_t i = 0; i < arguments->name_count; i++) {
		char *name = strchr(rest, '"') + 1;

		rest = strchr(name, '"');
		*rest++ = '\0';
		arguments->names[i] = name;
	}
}

/* The text without the names. */
static char *without(const char *body, size_t bytes, const struct walk *list, size_t *ret_bytes)
{
	size_t before = (size_t)(list->at - body), after = (size_t)(body + bytes - list->end);
	char *text = malloc(before + after + 3);

	if (!text)
		return NULL;
	memcpy(text, body, before);
	memcpy(text + before, "[]", 2);
	memcpy(text + before + 2, list->end, after);
	*ret_bytes = before + after + 2;
	return text;
}

static int read_plain(
	const char *body, size_t bytes, const struct walk *list, struct arguments *arguments)
{
	_cleanup_free_ char *text = without(body, bytes, list, &bytes);

	arguments->texts = strndup(list->at, (size_t)(list->end - list->at));
	arguments->names = malloc((arguments->name_count + 1) * sizeof(*arguments->names));
	if (!text || !arguments->texts || !arguments->names)
		return -ENOMEM;
	arguments->object = json_loadb(text, bytes, 0, NULL);
	arguments->has_names = true;
	take_names(arguments->texts, arguments);
	return 0;
}

static int read_objects(
	const char *body, size_t bytes, struct arguments *arguments, json_error_t *where)
{
	const json_t *name;
	size_t i;

	arguments->object = json_loadb(body, bytes, 0, where);
	arguments->list = json_incref(json_object_get(arguments->object, KEY));
	arguments->has_names = json_is_array(arguments->list);
	arguments->names =
		malloc((json_array_size(arguments->list) + 1) * sizeof(*arguments->names));
	if (!arguments->names)
		return -ENOMEM;
	json_array_foreach(arguments->list, i, name) if (json_is_string(name))
		arguments->names[arguments->name_count++] = json_string_value(name);
	return 0;
}

int arguments_read(const char *body, size_t bytes, struct arguments *ret_arguments, struct err *err)
{
	struct arguments arguments = {0};
	struct walk list;
	json_error_t where;
	int result = 0;

	if (find_names(body, bytes, &list, &arguments.name_count))
		result = read_plain(body, bytes, &list, &arguments);
	/* what is wrong with the rest is told by its place in the whole */
	if (!result && !arguments.object) {
		arguments_deinit(&arguments);
		result = read_objects(body, bytes, &arguments, &where);
	}
	if (result)
		err_set(err, ENOMEM, "no memory");
	else if (
		!arguments
			 .object) /* jansson's words have texts of others in them, which are not repeated */
		result = err_set(err, EINVAL, "the body is no JSON: line %d, column %d", where.line,
			where.column);
	else if (!json_is_object(arguments.object))
		result = err_set(err, EINVAL, "the body is no JSON object");
	if (result)
		arguments_deinit(&arguments);
	else
		*ret_arguments = arguments;
	return result;
}

json_t *arguments_list(const struct arguments *arguments)
{
	json_t *list;

	if (!arguments->texts)
		return json_incref(arguments->list);
	list = json_array();
	for (size_t i = 0; i < arguments->name_count; i++)
		json_array_append_new(list, json_string(arguments->names[i]));
	return list;
}

void arguments_deinit(struct arguments *arguments)
{
	json_decref(arguments->object);
	json_decref(arguments->list);
	free(arguments->names);
	free(arguments->texts);
	*arguments = (struct arguments){0};
}
