/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotations of a pod that say what it is promised, as they are written onto it and taken off.
 *
 * A change names the version of the pod that it was made for. One that the API server carries out after nobody waits for it
 * any more changes nothing where the pod has changed since: neither a later promise, nor a pod that is bound.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"

struct promise;

struct promise_pod {
	const char *namespace, *name, *uid;
	const char *version; /* as it was last seen; "": it is read first */
};

/*
 * Writes these annotations and the node's label; what it does not have is taken off. NULL: all are. A pod that has changed is
 * read and written again; KUBE_E_INVALID: it is bound, KUBE_E_NOT_FOUND: there is another of that name. The result's body is the
 * pod. Copies what it is given. -ENOMEM, and no callback.
 */
int promise_write(struct kube_client *client, const struct promise_pod *pod,
	const json_t *annotations, kube_done_fn *done, void *context,
	struct promise **ret_promise) MUST_CHECK;

/*
 * Gives a bound pod the label that names its node, which a server before 1.35 does not take from the binding. -ENOMEM, and no
 * callback.
 */
int promise_label(struct kube_client *client, const struct promise_pod *pod, const char *node,
	kube_done_fn *done, void *context, struct promise **ret_promise) MUST_CHECK;

/* Whether a label can have it as its value. */
bool promise_is_label(const char *node);

/* Ends it without its callback. Accepts NULL. The server may carry it out. */
void promise_cancel(struct promise *promise);

/* Of a pod's annotations those that are a promise; NULL: no memory. */
json_t *promise_copy(const json_t *pod);
