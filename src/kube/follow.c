/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a collection, and every change of them.
 *
 * The place in the stream of changes is a resourceVersion: of the list, then of each event and bookmark that
 * was told. A watch that ends in any way goes on from there, so nothing is lost and nothing told twice. 410
 * says that the server has forgotten that place: the only remedy is a new list.
 */
#include "kube/follow.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PAGE_OBJECTS 200

/* The server ends a watch by itself then, and sends a bookmark about once a minute while nothing happens. */
#define WATCH_S	  480
#define SILENCE_S 150

struct kube_follow {
	struct kube_client *client;
	struct kube_follow_events events;
	void *context;
	char *path, *query;
	unsigned page_objects, silence_s;
	struct kube_call *call; /* NULL: pauses */
	struct loop_timer timer;
	char *version;	 /* NULL: is to be listed */
	char *next;	 /* the list's next page; NULL: its first */
	unsigned failed; /* since the server was last heard of */
	uint64_t heard_ns;
	bool is_inside, is_stopped;  /* in a callback: the end waits for it */
	bool is_expired, is_refused; /* by the watch's last word */
	struct err said;	     /* in it */
};

static void list(struct kube_follow *follow);
static void watch(struct kube_follow *follow);

static void follow_free(struct kube_follow *follow)
{
	kube_cancel(follow->call);
	loop_timer_clear(kube_client_loop(follow->client), &follow->timer);
	free(follow->path);
	free(follow->query);
	free(follow->version);
	free(follow->next);
	free(follow);
}

void kube_follow_stop(struct kube_follow *follow)
{
	if (!follow)
		return;
	follow->is_stopped = true;
	if (!follow->is_inside)
		follow_free(follow);
}

uint64_t kube_follow_heard_ns(const struct kube_follow *follow)
{
	return follow->heard_ns;
}

/* Whether it goes on; else it is gone. */
static bool leave(struct kube_follow *follow)
{
	bool goes_on = !follow->is_stopped;

	follow->is_inside = false;
	if (!goes_on)
		follow_free(follow);
	return goes_on;
}

static void resume(void *context)
{
	struct kube_follow *follow = context;

	if (follow->version)
		watch(follow);
	else
		list(follow);
}

static void resume_after_pause(struct kube_follow *follow)
{
	uint64_t pause_ns = kube_client_pause_ns(follow->client, ++follow->failed);

	loop_timer_set(kube_client_loop(follow->client), &follow->timer, clock_now_ns() + pause_ns);
}

static void set_text(char **text, const char *value)
{
	char *copy = value && *value ? strdup(value) : NULL;

	free(*text);
	*text = copy;
}

static void heard(struct kube_follow *follow)
{
	follow->heard_ns = clock_now_ns();
	follow->failed = 0;
}

/* The list is begun anew: without memory of a version, which a failed strdup() leaves as well. */
static void forget_version(struct kube_follow *follow)
{
	set_text(&follow->version, NULL);
	set_text(&follow->next, NULL);
}

/* Escapes a continue token for a query. */
static char *escaped(const char *text)
{
	char *result = malloc(3 * strlen(text) + 1), *at = result;

	for (; result && *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-_.~", *text))
			*at++ = *text;
		else
			at += sprintf(at, "%%%02X", (unsigned char)*text);
	if (result)
		*at = 0;
	return result;
}

static const char *metadata_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}

static void take_page(struct kube_follow *follow, const json_t *page)
{
	const json_t *items = json_object_get(page, "items");

	heard(follow);
	for (size_t i = 0; i < json_array_size(items) && !follow->is_stopped; i++)
		follow->events.object(follow->context, true, json_array_get(items, i));
	set_text(&follow->next, metadata_text(page, "continue"));
	if (follow->next || follow->is_stopped)
		return;
	set_text(&follow->version, metadata_text(page, "resourceVersion"));
	follow->events.complete(follow->context);
}

/* Cancelled: it stays for kube_follow_stop(), and does nothing. */
static void tell_trouble(struct kube_follow *follow, const struct kube_result *result)
{
	forget_version(follow);
	follow->events.trouble(follow->context, result->outcome, result->words);
	if (leave(follow) && result->outcome != KUBE_E_CANCELLED)
		resume_after_pause(follow);
}

static void list_done(void *context, const struct kube_result *result)
{
	struct kube_follow *follow = context;

	follow->call = NULL;
	follow->is_inside = true;
	if (result->outcome) {
		tell_trouble(follow, result);
		return;
	}
	take_page(follow, result->body);
	if (leave(follow))
		resume(follow);
}

static void list(struct kube_follow *follow)
{
	_cleanup_free_ char *next = follow->next ? escaped(follow->next) : NULL;
	_cleanup_free_ char *path = NULL;

	if (!follow->next) {
		follow->is_inside = true;
		follow->events.begin(follow->context);
		if (!leave(follow))
			return;
	}
	if (asprintf(&path, "%s?limit=%u%s%s%s%s", follow->path, follow->page_objects,
		    follow->query ? "&" : "", follow->query ? follow->query : "",
		    next ? "&continue=" : "", next ? next : "") < 0)
		path = NULL;
	if (!path || (follow->next && !next) ||
		kube_get(follow->client, path, list_done, follow, &follow->call)) {
		forget_version(follow);
		resume_after_pause(follow);
	}
}

/* The watch's last word: not an object, but why it ends. */
static int take_error(struct kube_follow *follow, const json_t *status)
{
	const char *message = json_string_value(json_object_get(status, "message"));

	follow->is_expired = json_integer_value(json_object_get(status, "code")) == 410;
	follow->is_refused = !follow->is_expired;
	err_set(&follow->said, 0, "the watch was ended: %s", message ? message : "no reason given");
	return -ECANCELED;
}

static int take_event(void *context, const json_t *line)
{
	struct kube_follow *follow = context;
	const char *type = json_string_value(json_object_get(line, "type"));
	const json_t *object = json_object_get(line, "object");
	const char *version = metadata_text(object, "resourceVersion");

	if (!type || !object)
		return -EBADMSG;
	if (!strcmp(type, "ERROR"))
		return take_error(follow, object);
	if (!version)
		return -EBADMSG;
	heard(follow);
	follow->is_inside = true;
	if (strcmp(type, "BOOKMARK"))
		follow->events.object(follow->context, strcmp(type, "DELETED"), object);
	follow->is_inside = false;
	set_text(&follow->version, version);
	return follow->is_stopped || !follow->version ? -ECANCELED : 0;
}

/*
 * A watch that said nothing is followed by a pause: a server that ends each at once is not asked without end.
 */
static void resume_soon(struct kube_follow *follow)
{
	if (follow->failed) {
		resume_after_pause(follow);
		return;
	}
	follow->failed = 1; /* until it is heard of again */
	resume(follow);
}

static void watch_done(void *context, const struct kube_result *result)
{
	struct kube_follow *follow = context;
	enum kube_outcome outcome = follow->is_refused ? KUBE_E_UNREACHABLE : result->outcome;
	const char *words = follow->is_refused ? follow->said.text : result->words;

	follow->call = NULL;
	follow->is_refused = false;
	if (follow->is_stopped) {
		follow_free(follow);
		return;
	}
	if (follow->is_expired || outcome == KUBE_E_GONE) {
		follow->is_expired = false;
		forget_version(follow);
		outcome = 0;
	}
	if (!outcome) {
		resume_soon(follow);
		return;
	}
	follow->is_inside = true;
	follow->events.trouble(follow->context, outcome, words);
	if (leave(follow) && outcome != KUBE_E_CANCELLED)
		resume_after_pause(follow);
}

static void watch(struct kube_follow *follow)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path,
		    "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%s%s%s",
		    follow->path, WATCH_S, follow->version, follow->query ? "&" : "",
		    follow->query ? follow->query : "") < 0)
		path = NULL;
	if (!path || kube_stream(follow->client, path, follow->silence_s, take_event, watch_done,
			     follow, &follow->call))
		resume_after_pause(follow);
}

int kube_follow_start(struct kube_client *client, const struct kube_follow_request *request,
	const struct kube_follow_events *events, void *context, struct kube_follow **ret_follow)
{
	struct kube_follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return -ENOMEM;
	follow->client = client;
	follow->events = *events;
	follow->context = context;
	follow->timer = (struct loop_timer){.due = resume, .context = follow};
	follow->page_objects = request->page_objects ? request->page_objects : PAGE_OBJECTS;
	follow->silence_s = request->silence_s ? request->silence_s : SILENCE_S;
	set_text(&follow->path, request->path);
	set_text(&follow->query, request->query);
	if (!follow->path || (request->query && !follow->query)) {
		follow_free(follow);
		return -ENOMEM;
	}
	/* not from here: callbacks come from the loop */
	loop_timer_set(kube_client_loop(client), &follow->timer, clock_now_ns());
	*ret_follow = follow;
	return 0;
}
