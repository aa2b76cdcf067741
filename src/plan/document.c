/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of YAML as JSON.
 *
 * They are built from the parser's events, so that a text that opens brackets without end costs no more than the depth that
 * is allowed.
 */
#include "plan/document.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"

#define DEPTH_MOST   100
#define ANCHORS_MOST 1000
/* Values that aliases may stand for, all together: an alias of aliases grows fast. */
#define ALIASED_MOST 1000000

struct anchor {
	char *name;
	json_t *value;
	size_t size; /* in values */
};

struct document_reader {
	yaml_parser_t parser;
	const char *file;
	struct err *err;
	struct anchor anchors[ANCHORS_MOST];
	size_t anchor_count;
	size_t made, aliased; /* values */
	size_t line;
	size_t *items; /* lines */
	size_t item_count;
	bool is_at_items; /* the value that comes is that of the root's key "items" */
};

int document_reader_new(
	const char *file, const char *text, size_t bytes, struct document_reader **ret_reader)
{
	struct document_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	if (!yaml_parser_initialize(&reader->parser)) {
		free(reader);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, bytes);
	reader->file = file;
	*ret_reader = reader;
	return 0;
}

static void forget_document(struct document_reader *reader)
{
	while (reader->anchor_count) {
		struct anchor *anchor = &reader->anchors[--reader->anchor_count];

		free(anchor->name);
		json_decref(anchor->value);
	}
	free(reader->items);
	reader->items = NULL;
	reader->item_count = 0;
}

void document_reader_free(struct document_reader *reader)
{
	if (!reader)
		return;
	forget_document(reader);
	yaml_parser_delete(&reader->parser);
	free(reader);
}

static int complain(const struct document_reader *reader, const yaml_mark_t *mark, const char *what)
{
	return err_set(reader->err, EINVAL, "%.100s, line %zu: %.300s", reader->file,
		mark->line + 1, what);
}

static int lack_memory(const struct document_reader *reader)
{
	return err_set(reader->err, ENOMEM, "no memory");
}

static int next_event(struct document_reader *reader, yaml_event_t *ret_event)
{
	if (yaml_parser_parse(&reader->parser, ret_event))
		return 0;
	if (reader->parser.error == YAML_MEMORY_ERROR)
		return lack_memory(reader);
	return complain(reader, &reader->parser.problem_mark,
		reader->parser.problem ? reader->parser.problem : "this is no YAML");
}

static bool is_one_of(const char *text, const char *const *words)
{
	while (*words && strcmp(text, *words) != 0)
		words++;
	return *words;
}

/* "12", "-3"; those with a zero in front are texts, since programs differ about them. */
static bool is_whole(const char *text)
{
	const char *digits = text + (*text == '-' || *text == '+');
	size_t length = strspn(digits, "0123456789");

	return length && !digits[length] && (length == 1 || *digits != '0');
}

static bool is_number(const char *text)
{
	const char *digits = text + (*text == '-' || *text == '+');

	return strspn(digits, "0123456789") && text[strspn(text, "+-.eE0123456789")] == '\0' &&
	       strpbrk(text, ".eE");
}

/* What a text without quotes means. */
static json_t *plain_value(const char *text)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const yes[] = {"true", "True", "TRUE", NULL};
	static const char *const no[] = {"false", "False", "FALSE", NULL};
	char *end;

	if (is_one_of(text, nulls))
		return json_null();
	if (is_one_of(text, yes))
		return json_true();
	if (is_one_of(text, no))
		return json_false();
	if (is_whole(text)) {
		long long value;

		errno = 0;
		value = strtoll(text, &end, 10);
		if (!errno)
			return json_integer(value);
	} else if (is_number(text)) {
		double value = strtod(text, &end);

		if (!*end && isfinite(value))
			return json_real(value);
	}
	return json_string(text);
}

static int build_scalar(
	struct document_reader *reader, const yaml_event_t *event, json_t **ret_value)
{
	const char *text = (const char *)event->data.scalar.value;
	const char *tag = (const char *)event->data.scalar.tag;
	bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
			!(tag && !strcmp(tag, YAML_STR_TAG));

	if (memchr(text, 0, event->data.scalar.length))
		return complain(reader, &event->start_mark, "a text has a zero byte in it");
	*ret_value = is_plain ? plain_value(text) : json_string(text);
	return *ret_value ? 0 : lack_memory(reader);
}

static int resolve(struct document_reader *reader, const yaml_event_t *event, json_t **ret_value)
{
	for (size_t i = reader->anchor_count; i; i--) {
		const struct anchor *anchor = &reader->anchors[i - 1];

		if (strcmp(anchor->name, (const char *)event->data.alias.anchor) != 0)
			continue;
		reader->aliased += anchor->size;
		reader->made += anchor->size;
		if (reader->aliased > ALIASED_MOST)
			return complain(reader, &event->start_mark, "aliases stand for too much");
		*ret_value = json_incref(anchor->value);
		return 0;
	}
	return complain(reader, &event->start_mark,
		"an alias names no anchor before it, or one that it stands in");
}

static int keep_anchor(struct document_reader *reader, const char *name, const yaml_mark_t *mark,
	json_t *value, size_t size)
{
	struct anchor *anchor = &reader->anchors[reader->anchor_count];

	if (reader->anchor_count == ANCHORS_MOST)
		return complain(reader, mark, "more than 1000 anchors");
	anchor->name = strdup(name);
	if (!anchor->name)
		return lack_memory(reader);
	anchor->value = json_incref(value);
	anchor->size = size;
	reader->anchor_count++;
	return 0;
}

static int build(struct document_reader *reader, const yaml_event_t *event, unsigned depth,
	json_t **ret_value) MUST_CHECK;

static int note_item(struct document_reader *reader, const yaml_event_t *event)
{
	size_t count = reader->item_count;

	if (!(count & (count - 1))) {
		size_t *more = realloc(reader->items, (count ? 2 * count : 1) * sizeof(*more));

		if (!more)
			return lack_memory(reader);
		reader->items = more;
	}
	reader->items[reader->item_count++] = event->start_mark.line + 1;
	return 0;
}

static int build_list(struct document_reader *reader, unsigned depth, json_t *list)
{
	bool are_items = reader->is_at_items;

	reader->is_at_items = false;
	while (true) {
		json_t *value = NULL;
		yaml_event_t event;
		bool is_end;
		int result = next_event(reader, &event);

		if (result)
			return result;
		is_end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!is_end && are_items)
			result = note_item(reader, &event);
		if (!is_end && !result)
			result = build(reader, &event, depth, &value);
		yaml_event_delete(&event);
		if (result || is_end)
			return result;
		if (json_array_append_new(list, value))
			return lack_memory(reader);
	}
}

static int check_key(
	const struct document_reader *reader, const yaml_event_t *event, json_t *mapping)
{
	const char *key = (const char *)event->data.scalar.value;
	char words[200];

	if (event->type != YAML_SCALAR_EVENT)
		return complain(reader, &event->start_mark, "a key is no text");
	if (memchr(key, 0, event->data.scalar.length))
		return complain(reader, &event->start_mark, "a key has a zero byte in it");
	if (!strcmp(key, "<<"))
		return complain(reader, &event->start_mark,
			"merge keys ('<<') are not read; write the keys out");
	if (!json_object_get(mapping, key))
		return 0;
	snprintf(words, sizeof(words), "key '%.80s' is there twice; once is right", key);
	return complain(reader, &event->start_mark, words);
}

static int build_member(
	struct document_reader *reader, const char *key, unsigned depth, json_t *mapping)
{
	json_t *value = NULL;
	yaml_event_t event;
	int result = next_event(reader, &event);

	if (result)
		return result;
	reader->is_at_items = depth == 1 && event.type == YAML_SEQUENCE_START_EVENT &&
			      !reader->items && !strcmp(key, "items");
	result = build(reader, &event, depth, &value);
	yaml_event_delete(&event);
	if (result)
		return result;
	return json_object_set_new(mapping, key, value) ? lack_memory(reader) : 0;
}

static int build_mapping(struct document_reader *reader, unsigned depth, json_t *mapping)
{
	while (true) {
		yaml_event_t event;
		bool is_end;
		int result = next_event(reader, &event);

		if (result)
			return result;
		is_end = event.type == YAML_MAPPING_END_EVENT;
		if (!is_end)
			result = check_key(reader, &event, mapping);
		if (!is_end && !result)
			result = build_member(
				reader, (const char *)event.data.scalar.value, depth, mapping);
		yaml_event_delete(&event);
		if (result || is_end)
			return result;
	}
}

static int build_collection(struct document_reader *reader, const yaml_event_t *event,
	unsigned depth, json_t **ret_value)
{
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
	int result;

	if (depth == DEPTH_MOST)
		return complain(
			reader, &event->start_mark, "more than 100 lists and mappings are nested");
	*ret_value = is_list ? json_array() : json_object();
	if (!*ret_value)
		return lack_memory(reader);
	result = is_list ? build_list(reader, depth + 1, *ret_value)
			 : build_mapping(reader, depth + 1, *ret_value);
	if (result)
		json_decref(*ret_value);
	return result;
}

static const char *anchor_of(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

/* depth: of the collections around it. */
static int build(struct document_reader *reader, const yaml_event_t *event, unsigned depth,
	json_t **ret_value)
{
	const char *anchor = anchor_of(event);
	size_t before = reader->made++;
	int result;

	if (event->type == YAML_ALIAS_EVENT)
		return resolve(reader, event, ret_value);
	result = event->type == YAML_SCALAR_EVENT
			 ? build_scalar(reader, event, ret_value)
			 : build_collection(reader, event, depth, ret_value);
	if (result || !anchor)
		return result;
	result = keep_anchor(reader, anchor, &event->start_mark, *ret_value, reader->made - before);
	if (result)
		json_decref(*ret_value);
	return result;
}

/* Goes on to the root of a document. */
static int find_root(struct document_reader *reader, yaml_event_t *ret_event)
{
	while (true) {
		int result = next_event(reader, ret_event);

		if (result)
			return result;
		if (ret_event->type == YAML_STREAM_END_EVENT) {
			yaml_event_delete(ret_event);
			return DOCUMENT_E_END;
		}
		if (ret_event->type != YAML_STREAM_START_EVENT &&
			ret_event->type != YAML_DOCUMENT_START_EVENT &&
			ret_event->type != YAML_DOCUMENT_END_EVENT)
			return 0;
		yaml_event_delete(ret_event);
	}
}

int document_reader_next(struct document_reader *reader, json_t **ret_document, struct err *err)
{
	yaml_event_t event;
	int result;

	reader->err = err;
	forget_document(reader);
	reader->is_at_items = false;
	result = find_root(reader, &event);
	if (result)
		return result;
	reader->line = event.start_mark.line + 1;
	result = build(reader, &event, 0, ret_document);
	yaml_event_delete(&event);
	return result;
}

size_t document_reader_line(const struct document_reader *reader)
{
	return reader->line;
}

size_t document_reader_item_line(const struct document_reader *reader, size_t item)
{
	return item < reader->item_count ? reader->items[item] : 0;
}
