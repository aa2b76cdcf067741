/* SPDX-License-Identifier: Apache-2.0 */
/* The calls to the API server that bind a pod. */
#include "scheduler/bind_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "scheduler/nodelock.h"

int bind_calls_read_pod(struct kube_client *client, const char *namespace, const char *name,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s", namespace, name) < 0)
		path = NULL;
	return path ? kube_get(client, path, done, context, ret_call) : -ENOMEM;
}

int bind_calls_read_node(struct kube_client *client, const char *name, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "/api/v1/nodes/%s", name) < 0)
		path = NULL;
	return path ? kube_get(client, path, done, context, ret_call) : -ENOMEM;
}

int bind_calls_lock(struct kube_client *client, const char *node, const char *version,
	const char *lock, kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	json_t *patch =
		json_pack("{s:{s:{s:s}}}", "metadata", "annotations", NODELOCK_ANNOTATION, lock);
	_cleanup_free_ char *path = NULL;
	int result = -ENOMEM;

	if (asprintf(&path, "/api/v1/nodes/%s", node) < 0)
		path = NULL;
	if (path && patch)
		result = kube_patch(client, path, patch, version, done, context, ret_call);
	json_decref(patch);
	return result;
}

int bind_calls_unlock(struct kube_client *client, const char *node, const char *lock,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	static const char place[] = "/metadata/annotations/hami.io~1mutex.lock";
	json_t *operations = json_pack("[{s:s, s:s, s:s}, {s:s, s:s}]", "op", "test", "path", place,
		"value", lock, "op", "remove", "path", place);
	_cleanup_free_ char *path = NULL;
	int result = -ENOMEM;

	if (asprintf(&path, "/api/v1/nodes/%s", node) < 0)
		path = NULL;
	if (path && operations)
		result = kube_patch_if(client, path, operations, done, context, ret_call);
	json_decref(operations);
	return result;
}

static json_t *binding_of(const struct bind_target *target)
{
	json_t *annotations =
		target->annotations ? json_copy((json_t *)target->annotations) : json_object();
	char now[24];

	snprintf(now, sizeof(now), "%lld", (long long)time(NULL));
	if (target->annotations) {
		json_object_set_new(annotations, "hami.io/bind-phase", json_string("allocating"));
		json_object_set_new(annotations, "hami.io/bind-time", json_string(now));
	}
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:o}, s:{s:s, s:s, s:s}}", "apiVersion",
		"v1", "kind", "Binding", "metadata", "name", target->name, "namespace",
		target->namespace, "uid", target->uid, "annotations", annotations, "target",
		"apiVersion", "v1", "kind", "Node", "name", target->node);
}

int bind_calls_bind(struct kube_client *client, const struct bind_target *target,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	json_t *binding = binding_of(target);
	_cleanup_free_ char *path = NULL;
	int result = -ENOMEM;

	if (asprintf(&path, "/api/v1/namespaces/%s/pods/%s/binding", target->namespace,
		    target->name) < 0)
		path = NULL;
	if (path && binding)
		result = kube_create(client, path, binding, done, context, ret_call);
	json_decref(binding);
	return result;
}
