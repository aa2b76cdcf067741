/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an Allocate left half done is finished.
 *
 * A lock's pod is read from the API server before the lock is released: the one that is known here by that name may be
 * another that is about to go, while the scheduler binds its successor.
 */
#include "plugin/reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "plugin/cluster/change.h"
#include "plugin/cluster/choose.h"

#define LOG_TOPIC LOG_PODS

#define AGAIN_NS  (2ull * 1000000000) /* after a failure */

struct reconcile {
	const struct cluster *cluster;
	const struct allocate *allocate;
	struct kube_call *call; /* NULL: nothing is under way */
	struct loop_timer again;
	char *lock; /* whose owner was read */
};

static void pause_a_while(struct reconcile *reconcile)
{
	loop_timer_set(reconcile->cluster->loop, &reconcile->again, clock_now_ns() + AGAIN_NS);
}

static void again(void *context)
{
	reconcile_look(context);
}

static void was_unlocked(void *context, const struct kube_result *result)
{
	struct reconcile *reconcile = context;

	reconcile->call = NULL;
	if (result->outcome && result->outcome != KUBE_E_INVALID) {
		pause_a_while(reconcile);
		return;
	}
	log_info("a lock that was left over is released", STR("lock", reconcile->lock));
	node_forget_lock(reconcile->cluster->node);
	reconcile_look(reconcile);
}

static const char *text_at(const json_t *object, const char *key, const char *name)
{
	return json_string_value(json_object_get(json_object_get(object, key), name));
}

/* Whether the kubelet will not ask for it any more. One that is bound nowhere yet is about to be. */
static bool is_done_with(const struct reconcile *reconcile, const struct kube_result *result)
{
	const char *bound = text_at(result->body, "spec", "nodeName");
	const struct pod *pod;

	if (result->outcome)
		return result->outcome == KUBE_E_NOT_FOUND;
	if (!bound)
		return false;
	if (strcmp(bound, node_name(reconcile->cluster->node)) != 0)
		return true;
	pod = pods_take(reconcile->cluster->pods, result->body);
	return !pod || !choose_is_waiting(pod) ||
	       (pod->phase == POD_PHASE_SUCCESS && !pod_slots_left(pod));
}

static void owner_was_read(void *context, const struct kube_result *result)
{
	struct reconcile *reconcile = context;
	const struct cluster *cluster = reconcile->cluster;
	const struct node_lock *lock = &node_state(cluster->node)->lock;

	reconcile->call = NULL;
	if (!allocate_is_idle(reconcile->allocate) || !reconcile->lock ||
		strcmp(reconcile->lock, lock->text) != 0)
		return; /* it is looked at again after that */
	if (!is_done_with(reconcile, result))
		return;
	if (change_unlock(
		    cluster->client, cluster->node, was_unlocked, reconcile, &reconcile->call))
		pause_a_while(reconcile);
}

/* The lock of a pod that waits is left alone, and so costs no call. */
static bool look_at_lock(struct reconcile *reconcile)
{
	const struct cluster *cluster = reconcile->cluster;
	const struct node_lock *lock = &node_state(cluster->node)->lock;
	const struct pod *pod;

	if (!lock->has_owner)
		return false;
	pod = pods_find(cluster->pods, lock->space, lock->name);
	if (pod && choose_is_waiting(pod) && pod_slots_left(pod))
		return false;
	free(reconcile->lock);
	reconcile->lock = strdup(lock->text);
	return reconcile->lock && !pods_read(cluster->client, lock->space, lock->name,
					  owner_was_read, reconcile, &reconcile->call);
}

static void was_marked(void *context, const struct kube_result *result)
{
	struct reconcile *reconcile = context;

	reconcile->call = NULL;
	if (!result->outcome)
		pods_take(reconcile->cluster->pods, result->body);
	if (!result->outcome || result->outcome == KUBE_E_NOT_FOUND)
		reconcile_look(reconcile);
	else
		pause_a_while(reconcile);
}

/* One that has failed before all its slots were handed out was not bound after all. */
static bool look_at_pods(struct reconcile *reconcile)
{
	const struct cluster *cluster = reconcile->cluster;

	for (const struct pod *pod = pods_first(cluster->pods); pod; pod = pod->next) {
		struct change_pod change;

		if (!pod->is_over || pod->phase != POD_PHASE_ALLOCATING || !pod->node ||
			strcmp(pod->node, node_name(cluster->node)) != 0 ||
			change_pod_of(pod, &change))
			continue;
		if (change_to_failed(
			    cluster->client, &change, was_marked, reconcile, &reconcile->call))
			pause_a_while(reconcile);
		change_pod_deinit(&change);
		return true;
	}
	return false;
}

void reconcile_look(struct reconcile *reconcile)
{
	const struct cluster *cluster = reconcile->cluster;

	if (reconcile->call || reconcile->again.is_in || !allocate_is_idle(reconcile->allocate) ||
		!pods_are_known(cluster->pods) || !node_state(cluster->node)->is_known)
		return;
	if (!look_at_pods(reconcile))
		look_at_lock(reconcile);
}

int reconcile_new(const struct cluster *cluster, const struct allocate *allocate,
	struct reconcile **ret_reconcile)
{
	struct reconcile *reconcile = calloc(1, sizeof(*reconcile));

	if (!reconcile)
		return -ENOMEM;
	reconcile->cluster = cluster;
	reconcile->allocate = allocate;
	reconcile->again = (struct loop_timer){.due = again, .context = reconcile};
	*ret_reconcile = reconcile;
	return 0;
}

void reconcile_free(struct reconcile *reconcile)
{
	if (!reconcile)
		return;
	kube_cancel(reconcile->call);
	loop_timer_clear(reconcile->cluster->loop, &reconcile->again);
	free(reconcile->lock);
	free(reconcile);
}
