/* SPDX-License-Identifier: Apache-2.0 */
/* Events on pods, for people. */
#include "kube/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/rate.h"

#define LOG_TOPIC      LOG_PODS

#define UNDER_WAY_MOST 500
#define SAID	       1024 /* that are remembered */
#define QUIET_NS       (300ull * 1000000000)
#define MESSAGE_BYTES  1024

/*
 * Of what went well. An event costs the API server as much as half a binding, and in a rush of pods there would be two for each.
 * What failed is told at any rate.
 */
#define NORMAL_A_SECOND 5
#define NORMAL_BURST	50

struct event_log {
	struct kube_client *client;
	char *component;
	unsigned under_way;
	uint64_t lost, left_out, number;
	struct rate normal;
	struct {
		uint64_t digest, at_ns;
	} said[SAID]; /* each at the place that its digest names */
};

int event_log_new(struct kube_client *client, const char *component, struct event_log **ret_log)
{
	struct event_log *log = calloc(1, sizeof(*log));

	if (!log || !(log->component = strdup(component))) {
		free(log);
		return -ENOMEM;
	}
	log->client = client;
	log->normal = (struct rate){.per_s = NORMAL_A_SECOND, .burst = NORMAL_BURST};
	*ret_log = log;
	return 0;
}

void event_log_free(struct event_log *log)
{
	if (!log)
		return;
	free(log->component);
	free(log);
}

static bool was_said(struct event_log *log, const struct event *event)
{
	const char *const texts[] = {event->uid, event->reason, event->message};
	uint64_t digest = 14695981039346656037u, now = clock_now_ns();
	size_t at;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (const char *c = texts[i]; *c; c++)
			digest = (digest ^ (unsigned char)*c) * 1099511628211u;
	at = digest % SAID;
	if (log->said[at].digest == digest && now - log->said[at].at_ns < QUIET_NS)
		return true;
	log->said[at].digest = digest;
	log->said[at].at_ns = now;
	return false;
}

static json_t *describe(struct event_log *log, const struct event *event)
{
	char stamp[32], name[320];
	time_t now = time(NULL);
	struct tm tm;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	snprintf(name, sizeof(name), "%.200s.%llx%llx", event->pod, (unsigned long long)now,
		(unsigned long long)(clock_now_ns() ^ ++log->number << 48));
	return json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:s, s:s%, s:s, s:s, "
		"s:s, s:i, s:{s:s}}",
		"apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
		event->namespace, "involvedObject", "apiVersion", "v1", "kind", "Pod", "namespace",
		event->namespace, "name", event->pod, "uid", event->uid, "reason", event->reason,
		"message", event->message, strnlen(event->message, MESSAGE_BYTES), "type",
		event->is_warning ? "Warning" : "Normal", "firstTimestamp", stamp, "lastTimestamp",
		stamp, "count", 1, "source", "component", log->component);
}

static void was_told(void *context, const struct kube_result *result)
{
	struct event_log *log = context;

	log->under_way--;
	if (result->outcome && !log->lost++)
		log_warn("an event could not be told", STR("why", result->words));
}

/* False: there are too many of them at the moment. */
static bool take_normal(struct event_log *log)
{
	struct rate rate = log->normal;
	uint64_t now = clock_now_ns();

	if (rate_take(&rate, now) > now)
		return false;
	log->normal = rate;
	return true;
}

void event_tell(struct event_log *log, const struct event *event)
{
	_cleanup_free_ char *path = NULL;
	struct kube_call *call;
	json_t *object;

	if (was_said(log, event))
		return;
	if (!event->is_warning && !take_normal(log)) {
		log->left_out++;
		return;
	}
	object = log->under_way < UNDER_WAY_MOST ? describe(log, event) : NULL;
	if (asprintf(&path, "/api/v1/namespaces/%s/events", event->namespace) < 0)
		path = NULL;
	if (path && object && !kube_create(log->client, path, object, was_told, log, &call))
		log->under_way++;
	else
		log->lost++;
	json_decref(object);
}

uint64_t event_lost_count(const struct event_log *log)
{
	return log->lost;
}

uint64_t event_left_out_count(const struct event_log *log)
{
	return log->left_out;
}
