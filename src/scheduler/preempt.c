/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods of a node have to go so that another fits. */
#include "scheduler/preempt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A pod that could go. */
struct occupant {
	const char *uid;
	struct books_standing standing;
	bool is_proposed, goes;
};

struct search {
	struct books *books;
	const struct preempt_request *request;
	struct fit_pod pod;
	struct fit_result *scratch;
	struct occupant *occupants;
	size_t count;
	bool is_out_of_memory;
};

static bool is_proposed(const struct preempt_request *request, const char *uid)
{
	for (size_t i = 0; i < request->victim_count; i++)
		if (!strcmp(request->victims[i], uid))
			return true;
	return false;
}

/* What is promised and not bound is nowhere yet: it cannot be ended there. */
static void take_occupant(void *context, const char *uid, const struct books_standing *standing)
{
	struct search *search = context;
	bool was_proposed = is_proposed(search->request, uid);
	struct occupant *grown;

	if (!standing->is_bound ||
		(!was_proposed && standing->priority >= search->request->priority))
		return;
	grown = reallocarray(search->occupants, search->count + 1, sizeof(*grown));
	if (!grown) {
		search->is_out_of_memory = true;
		return;
	}
	search->occupants = grown;
	grown[search->count++] = (struct occupant){uid, *standing, was_proposed, true};
}

/*
 * The order of being spared: those that end anyway come last, and those that were proposed after others, because of those
 * kube-scheduler knows their disruption budgets.
 */
static int compare(const void *a, const void *b)
{
	const struct occupant *one = a, *other = b;
	const struct books_standing *x = &one->standing, *y = &other->standing;

	if (x->is_ending != y->is_ending)
		return x->is_ending ? 1 : -1;
	if (one->is_proposed != other->is_proposed)
		return one->is_proposed ? 1 : -1;
	if (x->priority != y->priority)
		return x->priority < y->priority ? 1 : -1;
	if (x->since_s != y->since_s)
		return x->since_s > y->since_s ? 1 : -1;
	return strcmp(one->uid, other->uid);
}

static bool fits_now(struct search *search)
{
	const struct fit_node *node = books_node(search->books, search->request->node);

	search->pod.room = books_room(search->books, search->request->demand->namespace);
	return node && fit(node, &search->pod, search->scratch);
}

/* All go, and one after the other comes back while the pod fits. */
static bool spare(struct search *search)
{
	for (size_t i = 0; i < search->count; i++)
		books_set_aside(search->books, search->occupants[i].uid, true);
	if (!fits_now(search))
		return false;
	for (size_t i = 0; i < search->count; i++) {
		struct occupant *occupant = &search->occupants[i];

		books_set_aside(search->books, occupant->uid, false);
		occupant->goes = !fits_now(search);
		if (occupant->goes)
			books_set_aside(search->books, occupant->uid, true);
	}
	return true;
}

bool preempt_lacks_slices(const struct fit_node *node, const struct fit_pod *pod)
{
	int64_t free_count = 0, running = 0, most = 0;

	for (size_t i = 0; node && i < node->device_count; i++)
		free_count += node->devices[i].all.slots - node->devices[i].used.slots;
	for (size_t i = 0; i < pod->request_count; i++) {
		int64_t now = running + pod->requests[i].devices;

		most = now > most ? now : most;
		if (pod->requests[i].kind != FIT_INIT)
			running = now;
	}
	return free_count < most;
}

static bool has_occupant(const struct search *search, const char *uid)
{
	for (size_t i = 0; i < search->count; i++)
		if (!strcmp(search->occupants[i].uid, uid))
			return true;
	return false;
}

static int list(const struct search *search, bool keeps_proposal, struct preempt_answer *answer)
{
	const struct preempt_request *request = search->request;

	answer->uids = calloc(search->count + request->victim_count + 1, sizeof(*answer->uids));
	if (!answer->uids)
		return -ENOMEM;
	answer->fits = true;
	for (size_t i = 0; i < search->count; i++)
		if (search->occupants[i].goes ||
			(keeps_proposal && search->occupants[i].is_proposed))
			answer->uids[answer->count++] = search->occupants[i].uid;
	for (size_t i = 0; i < request->victim_count; i++)
		if (!has_occupant(search, request->victims[i]))
			answer->uids[answer->count++] = request->victims[i];
	return 0;
}

static int choose(struct search *search, struct preempt_answer *answer)
{
	bool keeps_proposal = !preempt_lacks_slices(
		books_node(search->books, search->request->node), &search->pod);
	bool fits;

	if (search->count)
		qsort(search->occupants, search->count, sizeof(*search->occupants), compare);
	fits = spare(search);
	for (size_t i = 0; i < search->count; i++)
		books_set_aside(search->books, search->occupants[i].uid, false);
	return fits ? list(search, keeps_proposal, answer) : 0;
}

int preempt_choose(struct books *books, const struct preempt_request *request,
	struct preempt_answer *ret_answer)
{
	_cleanup_free_ struct fit_result *scratch = malloc(sizeof(*scratch));
	struct search search = {.books = books,
		.request = request,
		.pod = request->demand->pod,
		.scratch = scratch};
	int result = -ENOMEM;

	*ret_answer = (struct preempt_answer){.fits = false};
	if (!request->demand->asks)
		return list(&search, true, ret_answer);
	books_each_occupant(books, request->node, take_occupant, &search);
	if (scratch && !search.is_out_of_memory)
		result = choose(&search, ret_answer);
	free(search.occupants);
	return result;
}
