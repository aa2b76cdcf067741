/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the Kubernetes API from files. */
#include "plan/reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/document.h"

#define FILE_MOST_BYTES (512u << 20) /* some 100,000 pods, as kubectl writes them */
#define FIRST_BYTES	65536

void reader_say_where(const struct reader_object *object, char ret_text[READER_WHERE_BYTES])
{
	if (object->line)
		snprintf(ret_text, READER_WHERE_BYTES, "%.150s, line %zu", object->file,
			object->line);
	else if (object->item)
		snprintf(ret_text, READER_WHERE_BYTES, "%.150s, item %zu", object->file,
			object->item);
	else
		snprintf(ret_text, READER_WHERE_BYTES, "%.150s, document %zu", object->file,
			object->document);
}

static int complain(const struct reader_object *object, struct err *err, const char *what)
{
	char where[READER_WHERE_BYTES];

	reader_say_where(object, where);
	return err_set(err, EINVAL, "%s: %s", where, what);
}

int reader_append(struct reader_list *list, const struct reader_object *object)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		struct reader_object *more = realloc(list->at, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->at = more;
		list->room = room;
	}
	list->at[list->count] = *object;
	json_incref(list->at[list->count++].object);
	return 0;
}

/* An object is not the list's when it comes, and is kept by it. kind: of a list's elements, which may have none. */
static int take_object(struct reader_list *list, const struct reader_object *object,
	const char *kind, struct err *err)
{
	const json_t *its = json_object_get(object->object, "kind");

	if (!json_is_object(object->object))
		return complain(
			object, err, "this is no object; kind, metadata and spec are right");
	if (!its && kind && *kind)
		json_object_set_new(object->object, "kind", json_string(kind));
	else if (!json_is_string(its))
		return complain(object, err,
			"kind is missing or no text; Node, Pod or Deployment would be right");
	if (!json_is_object(json_object_get(object->object, "metadata")))
		return complain(object, err, "metadata is missing or no mapping");
	return reader_append(list, object) ? err_set(err, ENOMEM, "no memory") : 0;
}

/* "NodeList" is a list of "Node", "List" of whatever there is; false: it is no list. */
static bool is_list(const json_t *object, char *ret_kind, size_t size)
{
	const char *kind = json_string_value(json_object_get(object, "kind"));
	size_t length = kind ? strlen(kind) : 0;

	if (length < 4 || strcmp(kind + length - 4, "List") != 0 || length - 4 >= size)
		return false;
	memcpy(ret_kind, kind, length - 4);
	ret_kind[length - 4] = '\0';
	return true;
}

static int take_document(struct reader_list *list, struct reader_object *object,
	const struct document_reader *yaml, struct err *err)
{
	json_t *document = object->object;
	const json_t *items = json_object_get(document, "items");
	char kind[64];

	if (json_is_null(document))
		return 0;
	if (!is_list(document, kind, sizeof(kind)))
		return take_object(list, object, NULL, err);
	if (!json_is_array(items) && !json_is_null(items))
		return complain(object, err, "items is missing or no list");
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct reader_object one = {json_array_get(items, i), object->file,
			object->document, yaml ? document_reader_item_line(yaml, i) : 0, i + 1};
		int result = take_object(list, &one, kind, err);

		if (result)
			return result;
	}
	return 0;
}

static int read_yaml(
	const char *file, const char *text, size_t bytes, struct reader_list *list, struct err *err)
{
	struct reader_object object = {.file = file};
	struct document_reader *yaml;
	int result = document_reader_new(file, text, bytes, &yaml);

	if (result)
		return err_set(err, -result, "no memory");
	while (!(result = document_reader_next(yaml, &object.object, err))) {
		object.document++;
		object.line = document_reader_line(yaml);
		result = take_document(list, &object, yaml, err);
		json_decref(object.object);
		if (result)
			break;
	}
	document_reader_free(yaml);
	return result == DOCUMENT_E_END ? 0 : result;
}

/* False: it is no single document of JSON; YAML has what begins alike. */
static bool read_json(const char *file, const char *text, size_t bytes, struct reader_list *list,
	int *ret_result, struct err *err)
{
	struct reader_object object = {.file = file, .document = 1};
	size_t blank = 0;

	while (blank < bytes && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank == bytes || text[blank] != '{')
		return false;
	object.object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	if (!object.object)
		return false;
	*ret_result = take_document(list, &object, NULL, err);
	json_decref(object.object);
	return true;
}

int reader_read_text(
	const char *file, const char *text, size_t bytes, struct reader_list *list, struct err *err)
{
	int result;

	if (read_json(file, text, bytes, list, &result, err))
		return result;
	return read_yaml(file, text, bytes, list, err);
}

static int read_stream(
	FILE *stream, const char *file, char **ret_text, size_t *ret_bytes, struct err *err)
{
	size_t room = FIRST_BYTES, used = 0;
	char *text = malloc(room);

	while (text) {
		used += fread(text + used, 1, room - used, stream);
		if (used < room || room >= FILE_MOST_BYTES)
			break;
		room *= 2;
		*ret_text = realloc(text, room);
		if (!*ret_text)
			free(text);
		text = *ret_text;
	}
	if (text && !ferror(stream) && feof(stream)) {
		*ret_text = text;
		*ret_bytes = used;
		return 0;
	}
	free(text);
	if (!text)
		return err_set(err, ENOMEM, "no memory");
	if (ferror(stream))
		return err_set(err, EIO, "%.200s: %s", file, strerror(errno ? errno : EIO));
	return err_set(err, EINVAL, "%.200s: it is larger than 512 MiB", file);
}

int reader_read_file(const char *path, struct reader_list *list, struct err *err)
{
	bool is_input = !strcmp(path, "-");
	const char *name = is_input ? "standard input" : path;
	FILE *stream = is_input ? stdin : fopen(path, "re");
	_cleanup_free_ char *text = NULL;
	size_t bytes = 0;
	int result;

	if (!stream)
		return err_set(err, errno, "%.200s: %s", path, strerror(errno));
	result = read_stream(stream, name, &text, &bytes, err);
	if (!is_input)
		fclose(stream);
	return result ? result : reader_read_text(name, text, bytes, list, err);
}

void reader_deinit(struct reader_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		json_decref(list->at[i].object);
	free(list->at);
	*list = (struct reader_list){0};
}
