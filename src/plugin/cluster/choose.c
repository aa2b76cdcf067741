/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod a request of the kubelet is for. */
#include "plugin/cluster/choose.h"

#include <string.h>

#include "base/cleanup.h"

/* By the kubelet's record: some container has none yet. Those that it does not name may have theirs. */
static bool lacks_slices(const struct pod *pod)
{
	for (unsigned i = 0; i < pod->container_count; i++)
		if (!pod->containers[i].has_slices)
			return true;
	return false;
}

bool choose_is_waiting(const struct pod *pod)
{
	const struct pod_container *next = pod_next_container(pod);

	if (pod->is_over || pod->is_leaving || pod->is_admitted)
		return false;
	return next ? !next->has_slices : lacks_slices(pod);
}

/* Whether the next request for the pod would be of this size. */
static bool fits(const struct pod *pod, unsigned slices)
{
	const struct pod_container *next = pod_next_container(pod);

	if (next)
		return next->slices == slices;
	for (unsigned i = 0; i < pod->container_count; i++)
		if (pod->containers[i].slices == slices && !pod->containers[i].has_slices)
			return true;
	return false;
}

static bool is_in_question(const struct pod *pod, unsigned slices)
{
	return choose_is_waiting(pod) && fits(pod, slices);
}

/* The next that the kubelet may ask for, from this one on. */
static struct pod *next_in_question(struct pod *pod, unsigned slices)
{
	while (pod && (pod->is_unlisted || !is_in_question(pod, slices)))
		pod = pod->next;
	return pod;
}

/* The one with the lock, also where the kubelet has not heard of it: while it waits, no other's own word counts. */
static struct pod *find_owner(const struct choose_request *request)
{
	struct pod *pod = request->first;

	while (pod && !(lock_is_of(request->lock, pod->space, pod->name) &&
			      is_in_question(pod, request->slices)))
		pod = pod->next;
	return pod;
}

/* The scheduler has a place for it here, by the lock and the pod's own word together. */
static bool has_place(const struct pod *pod, const char *node_name)
{
	return pod_slots_left(pod) && (!pod->node || !strcmp(pod->node, node_name));
}

/* The kubelet asks for the one at the front, unless it has refused that and has not said so yet. */
static enum choice choose_owner(
	const struct choose_request *request, const struct pod *owner, bool is_front)
{
	if (!is_front)
		return request->is_settled ? CHOICE_NOBODY : CHOICE_UNSURE;
	return has_place(owner, request->node_name) && pod_next_container(owner) ? CHOICE_POD
										 : CHOICE_MISMATCH;
}

/* Without a lock the reservation is the tenant's word alone; that the kubelet asks for it now is not. */
static enum choice choose_unlocked(const struct choose_request *request, const struct pod *front)
{
	if (request->requires_lock || !front || !pod_is_reserved(front, request->node_name) ||
		!pod_next_container(front))
		return CHOICE_NOBODY;
	return request->is_settled || !next_in_question(front->next, request->slices)
		       ? CHOICE_POD
		       : CHOICE_UNSURE;
}

const char *choose_explain(const struct pod *pod, struct err *err)
{
	_cleanup_(assignment_deinit) struct assignment left = ASSIGNMENT_NULL;

	if (!pod->to_allocate)
		return "device request not found";
	if (assignment_decode(pod->to_allocate, &left, err))
		return err->text;
	if (!pod_slots_left(pod))
		return "no pending device allocation found";
	return pod_has_written_slot(pod)
		       ? "device number not matched: the reservation does not fit the pod's "
			 "containers"
		       : "the reservation is not the one that was written at first "
			 "(hami.io/vgpu-devices-allocated)";
}

const struct pod *choose_before_owner(const struct choose_request *request)
{
	const struct pod *front = next_in_question(request->first, request->slices),
			 *owner = find_owner(request);

	return owner && front != owner ? front : NULL;
}

enum choice choose_pod(const struct choose_request *request, struct pod **ret_pod)
{
	struct pod *front = next_in_question(request->first, request->slices),
		   *owner = find_owner(request);
	enum choice choice = owner ? choose_owner(request, owner, owner == front)
				   : choose_unlocked(request, front);

	*ret_pod = choice == CHOICE_NOBODY ? NULL : owner ? owner : front;
	return choice;
}
