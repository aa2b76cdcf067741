/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods would have to end so that one that fits nowhere does. */
#include "plan/victims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/object.h"
#include "scheduler/preempt.h"

/* What ends on one node. */
struct choice {
	const char *node;
	struct preempt_answer answer;
	int64_t most; /* the highest priority of those that end */
};

static const json_t *find_pod(const struct world *world, const char *uid)
{
	for (size_t i = 0; i < world->pod_count; i++)
		if (!strcmp(object_text(world->pods[i].object, "uid"), uid))
			return world->pods[i].object;
	return NULL;
}

static int64_t highest(const struct world *world, const struct preempt_answer *answer)
{
	int64_t most = INT64_MIN;

	for (size_t i = 0; i < answer->count; i++) {
		int64_t its = demand_priority(find_pod(world, answer->uids[i]));

		most = its > most ? its : most;
	}
	return most;
}

static bool is_better(const struct choice *one, const struct choice *best)
{
	if (!best->node || one->most != best->most)
		return !best->node || one->most < best->most;
	return one->answer.count < best->answer.count;
}

static int look_at(struct world *world, struct preempt_request *request, struct choice *best)
{
	struct choice one = {.node = request->node};
	int result = preempt_choose(world->books, request, &one.answer);

	one.most = highest(world, &one.answer);
	if (!result && one.answer.fits && one.answer.count && is_better(&one, best)) {
		free(best->answer.uids);
		*best = one;
	} else {
		free(one.answer.uids);
	}
	return result;
}

static json_t *describe(struct world *world, const struct demand *demand, const struct choice *best)
{
	json_t *list = json_array();

	for (size_t i = 0; i < best->answer.count; i++) {
		const json_t *pod = find_pod(world, best->answer.uids[i]);

		json_array_append_new(
			list, json_pack("{s:s, s:s}", "namespace", object_text(pod, "namespace"),
				      "pod", object_text(pod, "name")));
	}
	return json_pack("{s:s, s:o, s:b}", "node", best->node, "ends", list, "is_asked",
		preempt_lacks_slices(books_node(world->books, best->node), &demand->pod));
}

int victims_find(struct world *world, const json_t *pod, const struct filter_request *request,
	json_t **ret_object)
{
	const char *policy = json_string_value(
		json_object_get(json_object_get(pod, "spec"), "preemptionPolicy"));
	struct preempt_request asked = {
		.demand = request->demand, .priority = demand_priority(pod)};
	struct choice best = {.node = NULL};
	int result = 0;

	*ret_object = NULL;
	if (policy && !strcmp(policy, "Never"))
		return 0;
	for (size_t i = 0; i < request->name_count && !result; i++) {
		asked.node = request->names[i];
		result = look_at(world, &asked, &best);
	}
	if (!result && best.node)
		*ret_object = describe(world, request->demand, &best);
	free(best.answer.uids);
	return result;
}
