/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the pod that the kubelet asks for.
 *
 * The kubelet's record and the node's lock are read at the same time. The lock is not read again for the same pod's next
 * container: while the pod that it names waits, the scheduler gives it to nobody else.
 *
 * A pod that the scheduler has bound since then is none that the kubelet can have asked for: the one that it asks for was
 * deleted meanwhile. So before a pod without a lock is chosen, the lock is read again.
 */
#include "plugin/cluster/find.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* How long the state of a pod that was told to nobody yet may be on its way. */
#define SETTLE_NS (700ull * 1000000)

/* When the node is read again after a failure. */
#define AGAIN_NS (1000ull * 1000000)

/* The lock's owner is asked for by then, where it still waits. */
#define FRESH_NS (20ull * 1000000000)

static void look(struct find *find);

void find_cancel(struct find *find)
{
	kube_cancel(find->call);
	find->call = NULL;
	record_cancel(&find->record);
	loop_timer_clear(find->cluster->loop, &find->begun);
	loop_timer_clear(find->cluster->loop, &find->settled);
	find->is_searching = false;
}

static void end(struct find *find, enum choice choice, struct pod *pod, const char *words)
{
	struct find_result result = {.choice = choice, .pod = pod, .words = words};

	find_cancel(find);
	find->done(find->context, &result);
}

static void has_settled(void *context)
{
	struct find *find = context;

	find->is_settled = true;
	look(find);
}

/* What is on its way comes by the watch, or does not come. */
static void wait_for_more(struct find *find)
{
	if (!find->settled.is_in)
		loop_timer_set(find->cluster->loop, &find->settled, clock_now_ns() + SETTLE_NS);
}

static void pod_was_read(void *context, const struct kube_result *result)
{
	struct find *find = context;

	find->call = NULL;
	pods_take_read(find->cluster->pods, find->asked_space, find->asked_name, result);
	find_look_again(find);
}

/* The watch may be behind the kubelet's own. Who was asked for last is not asked for again. */
static bool ask_for(struct find *find, const char *space, const char *name)
{
	if (!strcmp(find->asked_space, space) && !strcmp(find->asked_name, name))
		return false;
	snprintf(find->asked_space, sizeof(find->asked_space), "%s", space);
	snprintf(find->asked_name, sizeof(find->asked_name), "%s", name);
	return !pods_read(find->cluster->client, space, name, pod_was_read, find, &find->call);
}

/* One that is known by its name, and waits no more, may be the one before. */
static bool ask_for_owner(struct find *find)
{
	const struct node_lock *lock = &find->lock;
	const struct pod *known =
		lock->has_owner ? pods_find(find->cluster->pods, lock->space, lock->name) : NULL;

	return lock->has_owner && !(known && choose_is_waiting(known)) &&
	       ask_for(find, lock->space, lock->name);
}

/* What waits before the lock's pod may be gone, or have been refused. */
static bool ask_for_first(struct find *find, const struct choose_request *request)
{
	const struct pod *first = choose_before_owner(request);

	return first && ask_for(find, first->space, first->name);
}

static void read_lock(struct find *find);

static void decide_for(struct find *find, struct pod *pod)
{
	if (lock_is_of(&find->lock, pod->space, pod->name)) {
		end(find, CHOICE_POD, pod, "");
	} else if (find->read_for != pod->batch) {
		find->read_for = pod->batch;
		read_lock(find);
	} else if (lock_is_of(&node_state(find->cluster->node)->lock, pod->space, pod->name)) {
		end(find, CHOICE_NOBODY, NULL, "the pod is gone");
	} else {
		end(find, CHOICE_POD, pod, "");
	}
}

/* The kubelet knows a pod before it asks for its slices, so one that it does not list is not asked for. */
static void decide(struct find *find)
{
	const struct cluster *cluster = find->cluster;
	struct choose_request request = {
		.first = pods_first(cluster->pods),
		.node_name = node_name(cluster->node),
		.lock = &find->lock,
		.slices = find->slices,
		.requires_lock = cluster->config->requires_lock,
		.is_settled = find->is_settled,
	};
	struct pod *pod;
	enum choice choice;

	record_enter(&find->record);
	choice = choose_pod(&request, &pod);

	if (!(pod && lock_is_of(&find->lock, pod->space, pod->name)) && ask_for_owner(find))
		return;
	if (choice == CHOICE_POD)
		decide_for(find, pod);
	else if (choice == CHOICE_MISMATCH)
		end(find, choice, pod, choose_explain(pod, &find->why));
	else if (choice == CHOICE_NOBODY && ask_for_first(find, &request))
		return;
	else if (find->is_settled)
		end(find, CHOICE_NOBODY, NULL,
			request.requires_lock ? "no pod that waits on this node has its lock"
					      : "no pod that waits on this node has a reservation");
	else
		wait_for_more(find);
}

static void look(struct find *find)
{
	if (find->knows_lock && !find->call && !find->record.request &&
		pods_are_known(find->cluster->pods))
		decide(find);
}

void find_look_again(struct find *find)
{
	if (find->is_searching)
		look(find);
}

static void record_was_read(void *context)
{
	look(context);
}

/* The first that is known is the one that counts. */
static void keep_lock(struct find *find)
{
	if (!find->knows_lock)
		find->lock = node_state(find->cluster->node)->lock;
	find->knows_lock = true;
}

static void node_was_read(void *context, const struct kube_result *result)
{
	struct find *find = context;

	find->call = NULL;
	if (result->outcome) {
		node_read_in(find->cluster->node, AGAIN_NS); /* whose it was is to be released */
		end(find, CHOICE_NOBODY, NULL, "the node's lock cannot be read");
		return;
	}
	node_take(find->cluster->node, result->body);
	if (!find->is_searching) /* what the change was told to has ended it */
		return;
	keep_lock(find);
	look(find);
}

static void read_lock(struct find *find)
{
	const struct cluster *cluster = find->cluster;

	if (kube_get(cluster->client, node_path(cluster->node), node_was_read, find, &find->call))
		end(find, CHOICE_NOBODY, NULL, "no memory");
}

/* Whether the lock is known to be that of a pod which waits for its next container. */
static bool lock_is_fresh(const struct find *find)
{
	const struct node_state *state = node_state(find->cluster->node);
	const struct pod *owner =
		state->lock.has_owner
			? pods_find(find->cluster->pods, state->lock.space, state->lock.name)
			: NULL;

	return owner && choose_is_waiting(owner) && pod_slots_left(owner) &&
	       clock_now_ns() < state->read_at_ns + FRESH_NS;
}

/* Not from find_begin(), which calls nobody back. */
static void has_begun(void *context)
{
	struct find *find = context;

	if (lock_is_fresh(find)) {
		keep_lock(find);
		look(find);
	} else {
		read_lock(find);
	}
}

void find_begin(struct find *find, unsigned slices)
{
	const struct cluster *cluster = find->cluster;

	find->slices = slices;
	find->is_searching = true;
	find->read_for = 0;
	find->asked_space[0] = find->asked_name[0] = '\0';
	find->is_settled = find->knows_lock = false;
	find->settled = (struct loop_timer){.due = has_settled, .context = find};
	find->record.cluster = cluster;
	find->record.done = record_was_read;
	find->record.context = find;
	record_read(&find->record);
	find->begun = (struct loop_timer){.due = has_begun, .context = find};
	loop_timer_set(cluster->loop, &find->begun, clock_now_ns());
}
