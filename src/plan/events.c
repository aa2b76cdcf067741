/* SPDX-License-Identifier: Apache-2.0 */
/* The last events of a pod. */
#include "plan/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/show.h"
#include "scheduler/object.h"

#define EVENTS_MOST 8

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Writers differ in where they say it. */
static const char *time_of(const json_t *event)
{
	static const char *const keys[] = {"lastTimestamp", "eventTime", "firstTimestamp"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (*text_of(event, keys[i]))
			return text_of(event, keys[i]);
	return object_text(event, "creationTimestamp");
}

static const char *source_of(const json_t *event)
{
	const char *source = text_of(event, "reportingComponent");

	return *source ? source : text_of(json_object_get(event, "source"), "component");
}

static int compare(const void *one, const void *other)
{
	const struct reader_object *a = one, *b = other;

	return strcmp(time_of(a->object), time_of(b->object));
}

static json_t *describe(const json_t *event)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "time", time_of(event), "type",
		text_of(event, "type"), "reason", text_of(event, "reason"), "source",
		source_of(event), "message", text_of(event, "message"), "count",
		json_integer_value(json_object_get(event, "count")));
}

static json_t *choose(struct reader_list *list, const char *uid)
{
	json_t *chosen = json_array();

	if (list->count)
		qsort(list->at, list->count, sizeof(*list->at), compare);
	for (size_t i = list->count; i && json_array_size(chosen) < EVENTS_MOST; i--) {
		const json_t *event = list->at[i - 1].object;

		if (!strcmp(text_of(json_object_get(event, "involvedObject"), "uid"), uid))
			json_array_insert_new(chosen, 0, describe(event));
	}
	return chosen;
}

int events_read(struct live *live, const json_t *pod, json_t **ret_events, struct err *err)
{
	_cleanup_free_ char *path = NULL, *query = NULL;
	struct reader_list list = READER_LIST_NULL;
	int result;

	if (asprintf(&path, "/api/v1/namespaces/%s/events", object_text(pod, "namespace")) < 0)
		path = NULL;
	if (asprintf(&query, "fieldSelector=involvedObject.name%%3D%s", object_text(pod, "name")) <
		0)
		query = NULL;
	result = path && query ? live_list(live, path, query, "Event", &list, err)
			       : err_set(err, ENOMEM, "no memory");
	if (!result)
		*ret_events = choose(&list, object_text(pod, "uid"));
	reader_deinit(&list);
	return result;
}

void events_show(FILE *out, const json_t *events)
{
	const json_t *event;
	size_t i;

	if (json_array_size(events))
		fputs("\nits last events:\n", out);
	json_array_foreach(events, i, event)
	{
		fputs("  ", out);
		show_text(out, event, "time");
		fputs("  ", out);
		show_text(out, event, "source");
		fputs("  ", out);
		show_text(out, event, "reason");
		fputs(": ", out);
		show_text(out, event, "message");
		fputc('\n', out);
	}
}
