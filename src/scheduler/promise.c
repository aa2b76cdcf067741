/* SPDX-License-Identifier: Apache-2.0 */
/* The annotations of a pod that say what it is promised. */
#include "scheduler/promise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/assignment.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define LABEL_MOST_BYTES 63 /* of a label's value */
#define TRIES_MOST	 5  /* of a pod that others change at the same time */

static const char *const keys[] = {RESERVATION_NODE, RESERVATION_TIME, ASSIGNMENT_TO_ALLOCATE,
	ASSIGNMENT_ALLOCATED, RESERVATION_INSTANCES};

struct promise {
	struct kube_client *client;
	struct kube_call *call;
	char *path, *uid;
	json_t *patch;
	unsigned tries;
	kube_done_fn *done;
	void *context;
};

json_t *promise_copy(const json_t *pod)
{
	const json_t *all = json_object_get(json_object_get(pod, "metadata"), "annotations");
	json_t *copy = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys) && copy; i++) {
		json_t *value = json_object_get(all, keys[i]);

		if (value && json_object_set(copy, keys[i], value)) {
			json_decref(copy);
			copy = NULL;
		}
	}
	return copy;
}

void promise_cancel(struct promise *promise)
{
	if (!promise)
		return;
	kube_cancel(promise->call);
	json_decref(promise->patch);
	free(promise->path);
	free(promise->uid);
	free(promise);
}

static void end(struct promise *promise, const struct kube_result *result)
{
	kube_done_fn *done = promise->done;
	void *context = promise->context;

	promise->call = NULL;
	promise_cancel(promise);
	done(context, result);
}

static void end_with(struct promise *promise, enum kube_outcome outcome, const char *words)
{
	end(promise, &(struct kube_result){.outcome = outcome, .words = words});
}

/* An earlier attempt may have been carried out, and its answer lost. */
static bool is_written(const struct promise *promise, const json_t *pod)
{
	const json_t *is = json_object_get(json_object_get(pod, "metadata"), "annotations"),
		     *should = json_object_get(
			     json_object_get(promise->patch, "metadata"), "annotations");

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *value = json_object_get(should, keys[i]);

		const json_t *there = json_object_get(is, keys[i]);

		if (json_is_null(value) ? there != NULL : !json_equal(there, value))
			return false;
	}
	return true;
}

static void was_written(void *context, const struct kube_result *result);

static int send(struct promise *promise, const char *version)
{
	return kube_patch(promise->client, promise->path, promise->patch, version, was_written,
		promise, &promise->call);
}

static void was_read(void *context, const struct kube_result *result)
{
	struct promise *promise = context;

	promise->call = NULL;
	if (result->outcome)
		end(promise, result);
	else if (strcmp(object_text(result->body, "uid"), promise->uid) != 0)
		end_with(promise, KUBE_E_NOT_FOUND, "there is another pod of that name");
	else if (*object_node(result->body))
		end_with(promise, KUBE_E_INVALID, "the pod is bound");
	else if (is_written(promise, result->body))
		end(promise, result);
	else if (send(promise, object_text(result->body, "resourceVersion")))
		end_with(promise, KUBE_E_UNREACHABLE, "no memory");
}

static int read(struct promise *promise)
{
	return kube_get(promise->client, promise->path, was_read, promise, &promise->call);
}

static void was_written(void *context, const struct kube_result *result)
{
	struct promise *promise = context;

	promise->call = NULL;
	if (result->outcome != KUBE_E_CONFLICT || ++promise->tries == TRIES_MOST)
		end(promise, result);
	else if (read(promise))
		end_with(promise, KUBE_E_UNREACHABLE, "no memory");
}

static json_t *patch_of(const char *uid, const json_t *annotations)
{
	const char *node = json_string_value(json_object_get(annotations, RESERVATION_NODE));
	json_t *values = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys) && values; i++) {
		json_t *value = json_object_get(annotations, keys[i]);

		json_object_set_new(values, keys[i], value ? json_incref(value) : json_null());
	}
	return json_pack("{s:{s:s, s:o, s:{s:s?}}}", "metadata", "uid", uid, "annotations", values,
		"labels", RESERVATION_NODE, node && promise_is_label(node) ? node : NULL);
}

bool promise_is_label(const char *node)
{
	return strlen(node) <= LABEL_MOST_BYTES;
}

/* Takes the patch. version: "": the pod is read first; NULL: any. */
static int begin(struct kube_client *client, const struct promise_pod *pod, json_t *patch,
	const char *version, kube_done_fn *done, void *context, struct promise **ret_promise)
{
	struct promise *promise = calloc(1, sizeof(*promise));
	int result = -ENOMEM;

	if (!promise) {
		json_decref(patch);
		return -ENOMEM;
	}
	*promise = (struct promise){.client = client,
		.uid = strdup(pod->uid),
		.patch = patch,
		.done = done,
		.context = context};
	if (asprintf(&promise->path, "/api/v1/namespaces/%s/pods/%s", pod->namespace, pod->name) <
		0)
		promise->path = NULL;
	if (promise->uid && promise->patch && promise->path)
		result = version && !*version ? read(promise) : send(promise, version);
	if (result)
		promise_cancel(promise);
	else
		*ret_promise = promise;
	return result;
}

int promise_write(struct kube_client *client, const struct promise_pod *pod,
	const json_t *annotations, kube_done_fn *done, void *context, struct promise **ret_promise)
{
	return begin(client, pod, patch_of(pod->uid, annotations), pod->version, done, context,
		ret_promise);
}

int promise_label(struct kube_client *client, const struct promise_pod *pod, const char *node,
	kube_done_fn *done, void *context, struct promise **ret_promise)
{
	json_t *patch = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "uid", pod->uid, "labels",
		RESERVATION_NODE, node);

	return begin(client, pod, patch, NULL, done, context, ret_promise);
}
