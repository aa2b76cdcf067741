/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node that want slices, followed by one watch, in the order in which the kubelet admits them. */
#pragma once

#include "base/bits.h"
#include "kube/client.h"
#include "plugin/cluster/pod.h"

struct pods;

struct pods_events {
	/* Something is other than before. */
	void (*changed)(void *context);
};

/* The node's name is copied; the resources' are the caller's. -ENOMEM. */
int pods_start(struct kube_client *client, const char *node_name,
	const struct pod_resources *resources, const struct pods_events *events, void *context,
	struct pods **ret_pods) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void pods_stop(struct pods *pods);

/* Whether all that the server has are known. */
bool pods_are_known(const struct pods *pods);

struct pod *pods_first(const struct pods *pods);
struct pod *pods_find(const struct pods *pods, const char *space, const char *name);

/* The same by the UID, which no other pod ever has. */
struct pod *pods_find_uid(const struct pods *pods, const char *uid);

/* Takes over what a call said, which may be ahead of the watch. NULL: it is of another node, or wants no slices. */
struct pod *pods_take(struct pods *pods, const json_t *object);

/* Asks the server for the pod of that name. As kube_get(). */
int pods_read(struct kube_client *client, const char *space, const char *name, kube_done_fn *done,
	void *context, struct kube_call **ret_call) MUST_CHECK;

/*
 * Takes over what the server said of the pod of this name when that was read, and that there is none: what was known by that
 * name and is another is forgotten, which the watch may not have said yet. A read that failed says nothing.
 */
void pods_take_read(
	struct pods *pods, const char *space, const char *name, const struct kube_result *result);

/* The same of a pod that is known. The answer to a change may come after the watch's word that the pod is gone. */
void pods_renew(struct pods *pods, const json_t *object);
