/* SPDX-License-Identifier: Apache-2.0 */
/* POST /preempt: which pods of which nodes kube-scheduler may end so that a pod fits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "scheduler/extender.h"
#include "scheduler/preempt.h"

static const char *uid_of(const json_t *victim)
{
	const char *uid = json_string_value(json_object_get(victim, "UID"));

	/* a whole pod, where kube-scheduler sends those */
	if (!uid)
		uid = json_string_value(
			json_object_get(json_object_get(victim, "metadata"), "uid"));
	return uid ? uid : "";
}

/* What was proposed may violate so many disruption budgets; of others nothing is known. */
static json_t *victims_of(const struct preempt_answer *answer, const json_t *proposal)
{
	json_int_t violations = json_integer_value(json_object_get(proposal, "NumPDBViolations"));
	json_t *pods = json_array();

	for (size_t i = 0; i < answer->count; i++)
		json_array_append_new(pods, json_pack("{s:s}", "UID", answer->uids[i]));
	if (violations > (json_int_t)answer->count)
		violations = (json_int_t)answer->count;
	return json_pack("{s:o, s:I}", "Pods", pods, "NumPDBViolations", violations);
}

static int look_at_node(struct extender *extender, struct preempt_request *request,
	const json_t *proposal, json_t *nodes)
{
	const json_t *pods = json_object_get(proposal, "Pods"), *victim;
	_cleanup_free_ const char **uids = calloc(json_array_size(pods) + 1, sizeof(*uids));
	struct preempt_answer answer;
	size_t i;
	int result;

	if (!uids)
		return -ENOMEM;
	json_array_foreach(pods, i, victim) uids[i] = uid_of(victim);
	request->victims = uids;
	request->victim_count = json_array_size(pods);
	result = preempt_choose(cluster_books(extender->cluster), request, &answer);
	if (!result && answer.fits && answer.count)
		result = json_object_set_new(nodes, request->node, victims_of(&answer, proposal));
	free(answer.uids);
	return result ? -ENOMEM : 0;
}

/* What is proposed for each node, in the form of kube-scheduler's cache or as whole pods. */
static json_t *proposals_of(const json_t *arguments)
{
	json_t *proposals = json_object_get(arguments, "NodeNameToMetaVictims");

	return json_is_object(proposals) ? proposals
					 : json_object_get(arguments, "NodeNameToVictims");
}

static const char *decide(
	struct extender *extender, const json_t *pod, json_t *proposals, json_t *nodes)
{
	struct demand demand;
	struct err err = ERR_NULL;
	struct preempt_request request = {.demand = &demand, .priority = demand_priority(pod)};
	json_t *proposal;
	int result = 0;

	if (!json_is_object(pod) || !json_is_object(proposals))
		return "the arguments have no pod or no nodes";
	if (demand_read(&extender->settings->rules.demand, pod, &demand, &err))
		return "the pod's annotations are not understood";
	json_object_foreach(proposals, request.node, proposal)
	{
		if (!result)
			result = look_at_node(extender, &request, proposal, nodes);
	}
	demand_deinit(&demand);
	return result ? "no memory" : NULL;
}

/* There is no place for words in the answer: another status than 200 makes kube-scheduler try again. */
void extender_preempt(struct extender *extender, struct http_call *call)
{
	uint64_t began_ns = clock_now_ns();
	struct err err = ERR_NULL;
	json_t *arguments = extender_read(call, &err), *nodes = json_object();
	const char *trouble = extender_trouble(extender), *wrong = NULL;

	if (!arguments)
		wrong = err.text;
	else if (!trouble)
		wrong = decide(extender, json_object_get(arguments, "Pod"), proposals_of(arguments),
			nodes);
	measure_add(extender->measure, MEASURE_PREEMPT, began_ns, trouble || wrong);
	if (wrong)
		http_answer(call, 400, "text/plain", wrong, strlen(wrong));
	else if (trouble)
		http_answer(call, 503, "text/plain", trouble, strlen(trouble));
	else
		extender_answer(call, json_pack("{s:O}", "NodeNameToMetaVictims", nodes));
	json_decref(nodes);
	json_decref(arguments);
}
