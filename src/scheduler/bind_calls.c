/* SPDX-License-Identifier: Apache-2.0 */
/* The calls to the API server that bind a pod. */
#include "scheduler/bind_calls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/assignment.h"
#include "scheduler/nodelock.h"
#include "scheduler/promise.h"
#include "scheduler/reservation.h"

#define POD_PATH  "/api/v1/namespaces/%s/pods/%s"
#define NODE_PATH "/api/v1/nodes/%s"

/* NULL: no memory. */
static char *__attribute__((format(printf, 1, 2))) make_path(const char *format, ...)
{
	char *path = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&path, format, arguments) < 0)
		path = NULL;
	va_end(arguments);
	return path;
}

static int get(struct kube_client *client, const char *path, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	return path ? kube_get(client, path, done, context, ret_call) : -ENOMEM;
}

/* Puts annotations, which it takes, onto what is there and has that version. */
static int annotate(struct kube_client *client, const char *path, const char *version,
	json_t *annotations, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	json_t *patch = json_pack("{s:{s:o}}", "metadata", "annotations", annotations);
	int result = path && patch
			     ? kube_patch(client, path, patch, version, done, context, ret_call)
			     : -ENOMEM;

	json_decref(patch);
	return result;
}

int bind_calls_read_pod(struct kube_client *client, const char *namespace, const char *name,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = make_path(POD_PATH, namespace, name);

	return get(client, path, done, context, ret_call);
}

int bind_calls_read_node(struct kube_client *client, const char *name, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = make_path(NODE_PATH, name);

	return get(client, path, done, context, ret_call);
}

int bind_calls_read_pods(struct kube_client *client, const char *node, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path =
		make_path("/api/v1/pods?fieldSelector=spec.nodeName%%3D%s", node);

	return get(client, path, done, context, ret_call);
}

int bind_calls_lock(struct kube_client *client, const char *node, const char *version,
	const char *lock, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = make_path(NODE_PATH, node);

	return annotate(client, path, version, json_pack("{s:s}", NODELOCK_ANNOTATION, lock), done,
		context, ret_call);
}

int bind_calls_unlock(struct kube_client *client, const char *node, const char *version,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = make_path(NODE_PATH, node);

	return annotate(client, path, version, json_pack("{s:n}", NODELOCK_ANNOTATION), done,
		context, ret_call);
}

static json_t *binding_of(const struct bind_target *target)
{
	json_t *annotations = json_object(), *labels = json_object();
	char now[24];

	if (target->annotations) {
		json_object_update(annotations, (json_t *)target->annotations);
		snprintf(now, sizeof(now), "%lld", (long long)time(NULL));
		json_object_set_new(
			annotations, RESERVATION_PHASE, json_string(RESERVATION_ALLOCATING));
		json_object_set_new(annotations, "hami.io/bind-time", json_string(now));
		if (promise_is_label(target->node))
			json_object_set_new(labels, RESERVATION_NODE, json_string(target->node));
	}
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s, s:o, s:o}, s:{s:s, s:s, s:s}}",
		"apiVersion", "v1", "kind", "Binding", "metadata", "name", target->name,
		"namespace", target->namespace, "uid", target->uid, "resourceVersion",
		target->version, "annotations", annotations, "labels", labels, "target",
		"apiVersion", "v1", "kind", "Node", "name", target->node);
}

int bind_calls_bind(struct kube_client *client, const struct bind_target *target,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = make_path(POD_PATH "/binding", target->namespace, target->name);
	json_t *binding = binding_of(target);
	int result = path && binding ? kube_create(client, path, binding, done, context, ret_call)
				     : -ENOMEM;

	json_decref(binding);
	return result;
}

int bind_calls_renew_pod(struct kube_client *client, const struct bind_target *pod,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	json_t *now = json_sprintf("%llu", (unsigned long long)clock_now_ns());
	_cleanup_free_ char *path = make_path(POD_PATH, pod->namespace, pod->name);

	return annotate(client, path, pod->version,
		json_pack("{s:o}", "cantaloupe.io/not-bound", now), done, context, ret_call);
}
