/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugin changes at the API server for an Allocate. Each change is carried out only where the object is still as it
 * was known: the same pod, the same annotation, the same lock. KUBE_E_INVALID says that it is not, or, of a call that was
 * tried again, that the change is there already.
 */
#pragma once

#include "base/bits.h"
#include "kube/client.h"
#include "plugin/cluster/node.h"
#include "plugin/cluster/pod.h"

/* A pod by what cannot be mistaken for another. */
struct change_pod {
	char *space, *name, *uid;
};

/* A copy, for change_pod_deinit(). -ENOMEM. */
int change_pod_of(const struct pod *pod, struct change_pod *ret_pod) MUST_CHECK;
void change_pod_deinit(struct change_pod *pod);

struct change_text {
	const char *before, *now;
};

/*
 * The reservation is another; is_bound: that was its last slot, and the pod is bound. Of its instances those that were
 * made are said at once; NULL: it has none.
 */
int change_slot(struct kube_client *client, const struct change_pod *pod,
	const struct change_text *slots, const struct change_text *instances, bool is_bound,
	kube_done_fn *done, void *context, struct kube_call **ret_call) MUST_CHECK;

/* The allocation of a pod that runs is another, as the pod still wishes it (kube/wish.h). */
int change_allocation(struct kube_client *client, const struct change_pod *pod,
	const struct change_text *allocation, const char *wish, kube_done_fn *done, void *context,
	struct kube_call **ret_call) MUST_CHECK;

/* The binding has failed. */
int change_to_failed(struct kube_client *client, const struct change_pod *pod, kube_done_fn *done,
	void *context, struct kube_call **ret_call) MUST_CHECK;

/* The node's lock, as it was last read, is released. */
int change_unlock(struct kube_client *client, const struct node *node, kube_done_fn *done,
	void *context, struct kube_call **ret_call) MUST_CHECK;
