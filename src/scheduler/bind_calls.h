/* SPDX-License-Identifier: Apache-2.0 */
/* The calls to the API server that bind a pod. Each fails here for want of memory alone: -ENOMEM, and no callback. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"

int bind_calls_read_pod(struct kube_client *client, const char *namespace, const char *name,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;
int bind_calls_read_node(struct kube_client *client, const char *name, kube_done_fn *done,
	void *context, struct kube_call **ret_call) MUST_CHECK;

/* The pods that are bound to a node, as they are now. */
int bind_calls_read_pods(struct kube_client *client, const char *node, kube_done_fn *done,
	void *context, struct kube_call **ret_call) MUST_CHECK;

/* Sets the lock where the node is still at that version: else KUBE_E_CONFLICT. */
int bind_calls_lock(struct kube_client *client, const char *node, const char *version,
	const char *lock, kube_done_fn *done, void *context,
	struct kube_call **ret_call) MUST_CHECK;

/* Removes the lock where the node is still at that version. */
int bind_calls_unlock(struct kube_client *client, const char *node, const char *version,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;

struct bind_target {
	const char *namespace, *name, *uid, *node;
	const char *version; /* of the pod; KUBE_E_CONFLICT: it has another, and is not bound */
	/*
	 * What the pod was promised; NULL: it has no devices. The API server puts a binding's annotations onto the pod together
	 * with its node. These are all of them, and the phase: what the pod says is then what the books say, whatever
	 * was written onto it since.
	 */
	const json_t *annotations;
};

int bind_calls_bind(struct kube_client *client, const struct bind_target *target,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;

/*
 * Gives a pod that is still at that version another one: a binding that names it, and that the server carries out after nobody
 * waits for it any more, binds nothing then. Else KUBE_E_CONFLICT.
 */
int bind_calls_renew_pod(struct kube_client *client, const struct bind_target *pod,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;
