/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of a decision. */
#include "scheduler/filter_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 1000 /* an event has no more */
#define ROOM_BYTES    32   /* that stay for its end */

struct message {
	char text[MESSAGE_BYTES];
	size_t bytes;
	bool is_full;
};

/* What does not fit is left out as a whole, and everything after it. */
static void __attribute__((format(printf, 3, 4)))
add(struct message *message, size_t end_bytes, const char *format, ...)
{
	size_t room = sizeof(message->text) - message->bytes - end_bytes;
	va_list arguments;
	int length;

	if (message->is_full)
		return;
	va_start(arguments, format);
	length = vsnprintf(message->text + message->bytes, room, format, arguments);
	va_end(arguments);
	message->is_full = length < 0 || (size_t)length >= room;
	if (message->is_full)
		message->text[message->bytes] = '\0';
	else
		message->bytes += (size_t)length;
}

static void end(struct message *message)
{
	const char *words = message->is_full ? ",...)" : ")";

	strcpy(message->text + message->bytes, words);
}

char *filter_events_found(const struct filter_request *request, const struct filter_answer *answer)
{
	struct message message = {.bytes = 0};
	size_t told = 0;

	add(&message, ROOM_BYTES, "find fit node(%.253s), %zu nodes not fit, %zu nodes fit(",
		request->names[answer->chosen], answer->name_count - answer->fit_count,
		answer->fit_count);
	for (size_t i = 0; i < answer->name_count && !message.is_full; i++)
		if (!answer->reasons[i])
			add(&message, ROOM_BYTES, "%s%.253s:%.2f", told++ ? "," : "",
				request->names[i], answer->scores[i]);
	end(&message);
	return strdup(message.text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void tell(struct event_log *log, const struct demand *demand, const char *message)
{
	event_tell(log, &(struct event){.namespace = demand->namespace,
				.pod = demand->name,
				.uid = demand->uid,
				.reason = "FilteringFailed",
				.message = message,
				.is_warning = true});
}

static void tell_reason(struct event_log *log, const struct demand *demand, const char *word,
	const char **names, size_t count)
{
	struct message message = {.bytes = 0};

	qsort(names, count, sizeof(*names), compare);
	add(&message, ROOM_BYTES, "%zu nodes %s(", count, word);
	for (size_t i = 0; i < count && !message.is_full; i++)
		add(&message, ROOM_BYTES, "%s%.253s", i ? "," : "", names[i]);
	end(&message);
	tell(log, demand, message.text);
}

void filter_events_none(struct event_log *log, const struct demand *demand,
	const struct filter_request *request, const struct filter_answer *answer)
{
	const char **names = calloc(answer->name_count + 1, sizeof(*names));
	char text[80];

	for (unsigned i = 0; i < FIT_REASONS && names; i++) {
		size_t count = 0;

		for (size_t n = 0; n < answer->name_count; n++)
			if (answer->reasons[n]->devices[i])
				names[count++] = request->names[n];
		if (count)
			tell_reason(log, demand, fit_reason_word((enum fit_reason)i), names, count);
	}
	free(names);
	snprintf(
		text, sizeof(text), "no available node, %zu nodes do not meet", answer->name_count);
	tell(log, demand, text);
}

void filter_events_count(struct measure *measure, const struct filter_answer *answer)
{
	for (size_t n = 0; n < answer->name_count; n++) {
		const struct filter_reason *reason = answer->reasons[n];

		for (unsigned i = 0; i < FIT_REASONS && reason; i++)
			measure->rejections[i] += reason->devices[i] > 0;
		measure->rejections[FIT_REASONS] += reason && reason->is_unregistered;
	}
}
