/* SPDX-License-Identifier: Apache-2.0 */
/* The API server of the small cluster, in the place of its client: what it loses, it loses before or after it is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kube/follow.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define MS_NS  1000000ull
#define PODS   "/api/v1/namespaces/default/pods/"
#define NODE   "/api/v1/nodes/" TOWN_NODE
#define PREFIX "/metadata/annotations/"

/* What is on its way to a follower: an object as it was. */
struct event {
	struct event *next;
	json_t *object;
	bool is_present;
};

struct kube_follow {
	struct kube_follow_events events;
	void *context;
	struct loop_timer timer;
	struct event *first, **last;
	bool has_listed;
};

struct kube_client {
	struct loop *loop;
	struct kube_call *first;
	struct kube_follow *follow;
};

struct kube_call {
	struct kube_client *client;
	struct kube_call *next, **link;
	struct loop_timer timer;
	const char *method;
	char *path;
	json_t *body;
	kube_done_fn *done;
	void *context;
};

/* ----- the follower ----- */

static struct kube_client *the_client;

void town_tell(json_t *object, bool is_present)
{
	struct kube_follow *follow = the_client ? the_client->follow : NULL;
	struct event *event;

	if (!follow || !follow->has_listed)
		return;
	event = calloc(1, sizeof(*event));
	assert_non_null(event);
	event->object = json_deep_copy(object);
	event->is_present = is_present;
	*follow->last = event;
	follow->last = &event->next;
	if (!follow->timer.is_in && !town.is_watch_late)
		loop_timer_set(town.loop, &follow->timer, clock_now_ns() + town_random(3) * MS_NS);
}

/* What is on its way when it becomes late comes. */
void town_delay_watch(bool is_late)
{
	struct kube_follow *follow = the_client->follow;

	town_run(50);
	town.is_watch_late = is_late;
	if (!is_late && follow->first)
		loop_timer_set(town.loop, &follow->timer, clock_now_ns());
}

static void tell_list(struct kube_follow *follow)
{
	const char *name;
	json_t *pod;

	follow->has_listed = true;
	follow->events.begin(follow->context);
	json_object_foreach(town.pods, name, pod) follow->events.object(follow->context, true, pod);
	follow->events.complete(follow->context);
}

static void tell_next(void *context)
{
	struct kube_follow *follow = context;
	struct event *event = follow->first;

	if (!follow->has_listed) {
		tell_list(follow);
		return;
	}
	follow->first = event->next;
	if (!follow->first)
		follow->last = &follow->first;
	else
		loop_timer_set(town.loop, &follow->timer, clock_now_ns() + town_random(3) * MS_NS);
	follow->events.object(follow->context, event->is_present, event->object);
	json_decref(event->object);
	free(event);
}

int kube_follow_start(struct kube_client *client, const struct kube_follow_request *request,
	const struct kube_follow_events *events, void *context, struct kube_follow **ret_follow)
{
	struct kube_follow *follow = calloc(1, sizeof(*follow));

	assert_non_null(follow);
	assert_string_equal(request->query, "fieldSelector=spec.nodeName%3D" TOWN_NODE);
	follow->events = *events;
	follow->context = context;
	follow->last = &follow->first;
	follow->timer = (struct loop_timer){.due = tell_next, .context = follow};
	client->follow = follow;
	loop_timer_set(town.loop, &follow->timer, clock_now_ns() + town_random(20) * MS_NS);
	*ret_follow = follow;
	return 0;
}

void kube_follow_stop(struct kube_follow *follow)
{
	struct event *event;

	if (!follow)
		return;
	the_client->follow = NULL;
	loop_timer_clear(town.loop, &follow->timer);
	while ((event = follow->first)) {
		follow->first = event->next;
		json_decref(event->object);
		free(event);
	}
	free(follow);
}

/* ----- the API server ----- */

const struct kube_settings kube_settings_default = {.cancel_fd = -1};

int kube_client_new(struct loop *loop, const struct kube_access *access,
	const struct kube_settings *settings, struct kube_client **ret_client, struct err *err)
{
	struct kube_client *client = calloc(1, sizeof(*client));

	assert_non_null(client);
	client->loop = loop;
	if (!the_client) /* the second is for events, of which there are none */
		the_client = client;
	*ret_client = client;
	return 0;
}

void kube_client_free(struct kube_client *client)
{
	while (client && client->first)
		kube_cancel(client->first);
	if (client == the_client)
		the_client = NULL;
	free(client);
}

struct loop *kube_client_loop(const struct kube_client *client)
{
	return client->loop;
}

uint64_t kube_client_pause_ns(const struct kube_client *client, unsigned failed)
{
	return 100 * MS_NS * failed;
}

/* The object that the path names, or NULL. */
static json_t *object_at(const char *path)
{
	if (!strcmp(path, NODE))
		return town.node;
	assert_int_equal(strncmp(path, PODS, strlen(PODS)), 0);
	return json_object_get(town.pods, path + strlen(PODS));
}

json_t *town_annotations(json_t *object)
{
	return json_object_get(json_object_get(object, "metadata"), "annotations");
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Where an operation leads: an object, and a key in it. */
static json_t *place_of(json_t *object, const char *path, char *ret_key, size_t size)
{
	char *slash;

	if (!strcmp(path, "/metadata/uid")) {
		snprintf(ret_key, size, "uid");
		return json_object_get(object, "metadata");
	}
	assert_int_equal(strncmp(path, PREFIX, strlen(PREFIX)), 0);
	snprintf(ret_key, size, "%s", path + strlen(PREFIX));
	slash = strstr(ret_key, "~1");
	assert_non_null(slash);
	*slash = '/';
	memmove(slash + 1, slash + 2, strlen(slash + 2) + 1);
	return town_annotations(object);
}

static bool operate(json_t *object, const json_t *operation)
{
	const char *what = text_of(operation, "op"), *value = text_of(operation, "value"), *is;
	char key[200];
	json_t *place = place_of(object, text_of(operation, "path"), key, sizeof(key));

	is = text_of(place, key);
	if (!strcmp(what, "test"))
		return is && !strcmp(is, value);
	if (!strcmp(what, "remove"))
		return !json_object_del(place, key);
	assert_true(!strcmp(what, "add") || !strcmp(what, "replace"));
	return (is || !strcmp(what, "add")) && !json_object_set_new(place, key, json_string(value));
}

static enum kube_outcome operate_all(json_t *object, const json_t *operations)
{
	json_t *copy = json_deep_copy(object);
	size_t i;
	json_t *operation;

	json_array_foreach(operations, i, operation) if (!operate(copy, operation))
	{
		json_decref(copy);
		return KUBE_E_INVALID;
	}
	json_object_clear(object);
	json_object_update(object, copy);
	json_decref(copy);
	return 0;
}

static void merge(json_t *object, const json_t *patch)
{
	json_t *to = town_annotations(object), *value;
	const char *key;

	json_object_foreach(town_annotations((json_t *)patch), key, value)
		json_object_set(to, key, value);
}

static enum kube_outcome carry_out(const struct kube_call *call, json_t **ret_object)
{
	json_t *object = object_at(call->path);
	enum kube_outcome outcome = 0;

	*ret_object = object;
	if (!object)
		return KUBE_E_NOT_FOUND;
	if (!strcmp(call->method, "GET"))
		return 0;
	town.patches++;
	if (!strcmp(call->method, "PATCH"))
		merge(object, call->body);
	else
		outcome = operate_all(object, call->body);
	if (!outcome && object != town.node)
		town_tell(object, true);
	return outcome;
}

static void call_free(struct kube_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	loop_timer_clear(town.loop, &call->timer);
	json_decref(call->body);
	free(call->path);
	free(call);
}

static bool is_unlucky(void)
{
	bool is = town_random(1000) < town.fault_permille;

	town.faults += is;
	return is;
}

static enum town_fault next_fault(void)
{
	if (town.fault_in && !--town.fault_in) {
		town.faults++;
		return town.fault;
	}
	if (is_unlucky())
		return town_random(2) ? TOWN_ANSWER_LOST : TOWN_CALL_LOST;
	return is_unlucky() ? TOWN_REPEATED : TOWN_NO_FAULT;
}

/* Faults: nothing was done, or it was and the answer lost, or its own first attempt is in its way. */
static void call_due(void *context)
{
	struct kube_call *call = context;
	struct kube_result result = {.words = "the server answered 4xx"};
	json_t *object = NULL;
	enum town_fault fault = next_fault();

	if (fault != TOWN_CALL_LOST)
		result.outcome = carry_out(call, &object);
	if (fault == TOWN_REPEATED)
		result.outcome = carry_out(call, &object);
	if (fault == TOWN_CALL_LOST || fault == TOWN_ANSWER_LOST)
		result.outcome = KUBE_E_UNREACHABLE;
	result.body = result.outcome ? NULL : json_deep_copy(object);
	kube_done_fn *done = call->done;
	void *of = call->context;
	call_free(call);
	done(of, &result);
	json_decref((json_t *)result.body);
}

static int begin(struct kube_client *client, const char *method, const char *path,
	const json_t *body, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	struct kube_call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->client = client;
	call->method = method;
	call->path = strdup(path);
	call->body = body ? json_deep_copy(body) : NULL;
	call->done = done;
	call->context = context;
	call->next = client->first;
	call->link = &client->first;
	if (call->next)
		call->next->link = &call->next;
	client->first = call;
	call->timer = (struct loop_timer){.due = call_due, .context = call};
	loop_timer_set(town.loop, &call->timer, clock_now_ns() + (1 + town_random(3)) * MS_NS);
	town.calls++;
	*ret_call = call;
	return 0;
}

int kube_get(struct kube_client *client, const char *path, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	return begin(client, "GET", path, NULL, done, context, ret_call);
}

int kube_patch(struct kube_client *client, const char *path, const json_t *patch,
	const char *resource_version, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	return begin(client, "PATCH", path, patch, done, context, ret_call);
}

int kube_patch_if(struct kube_client *client, const char *path, const json_t *operations,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	return begin(client, "IF", path, operations, done, context, ret_call);
}

int kube_create(struct kube_client *client, const char *path, const json_t *object,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	return -ENOMEM;
}

/* One that is cancelled may have been carried out. */
void kube_cancel(struct kube_call *call)
{
	json_t *object;

	if (!call)
		return;
	if (town_random(2))
		carry_out(call, &object);
	call_free(call);
}
