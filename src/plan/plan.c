/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu plan: where each pod that waits would go. */
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/assignment.h"
#include "plan/decide.h"
#include "plan/show.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

/* Pods that the scheduler has promised devices to, and those that a drain ends. */
static json_t *describe_settled(struct world *world, const struct world_pod *pod)
{
	const json_t *object = pod->object;
	const char *node = demand_annotation(object, RESERVATION_NODE);
	json_t *answer = json_pack("{s:s, s:s}", "namespace", object_text(object, "namespace"),
		"pod", object_text(object, "name"));

	if (pod->state == WORLD_GOES) {
		json_object_set_new(answer, "state", json_string("goes with its node"));
		return answer;
	}
	json_object_set_new(answer, "state", json_string("promised"));
	json_object_set_new(answer, "node", json_string(node));
	json_object_set_new(answer, "devices",
		decide_devices(world, object, node, demand_annotation(object, ASSIGNMENT_ALLOCATED),
			demand_annotation(object, RESERVATION_INSTANCES)));
	return answer;
}

/* Of a cluster's pods, those that need no device are left out. */
static int answer_pod(struct world *world, struct world_pod *pod,
	const struct decide_request *request, bool *is_all, json_t *answers)
{
	enum decide_outcome outcome;
	json_t *answer;
	int result;

	if (pod->state == WORLD_RUNS)
		return 0;
	if (pod->state != WORLD_WAITS)
		return json_array_append_new(answers, describe_settled(world, pod)) ? -ENOMEM : 0;
	result = decide(world, pod, request, &outcome, &answer);
	if (result)
		return result;
	if (outcome == DECIDE_PENDING || outcome == DECIDE_REFUSED)
		*is_all = false;
	if (outcome == DECIDE_OTHERS && !pod->is_new) {
		json_decref(answer);
		return 0;
	}
	return json_array_append_new(answers, answer) ? -ENOMEM : 0;
}

static void write_json(const json_t *answers, bool is_all)
{
	json_t *whole = json_pack("{s:b, s:O}", "is_all_placed", is_all, "pods", answers);

	json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(whole);
}

static void write_text(const struct options *options, const json_t *answers)
{
	const json_t *answer;
	size_t i;

	if (!json_array_size(answers)) {
		puts("no pod waits for a device");
		return;
	}
	show_table(stdout, answers);
	json_array_foreach(answers, i, answer)
	{
		putchar('\n');
		show_answer(stdout, answer, options->with_scores);
	}
	show_words(stdout, answers);
	if (options->with_scores)
		puts("\nA score says how full a node is, or a device would be: 10 each for slices, "
		     "compute time and\nmemory that are all used. binpack takes the highest, "
		     "spread "
		     "the lowest.");
	puts("\nOf kube-scheduler, cordon, taints, nodeSelector and node affinity are looked at; "
	     "its "
	     "other\nplugins (processors, memory, volumes, spreading) are not asked.");
}

int plan_show(const struct options *options, struct load *load, int *ret_status, struct err *err)
{
	const struct decide_request request = {options->is_json || options->with_scores, true};
	struct world *world = &load->world;
	json_t *answers = json_array();
	bool is_all = true;
	int result = answers ? 0 : -ENOMEM;

	world_sort(world);
	for (size_t i = 0; i < world->pod_count && !result; i++)
		result = answer_pod(world, &world->pods[i], &request, &is_all, answers);
	if (result)
		err_set(err, -result, "no memory");
	else if (options->is_json)
		write_json(answers, is_all);
	else
		write_text(options, answers);
	json_decref(answers);
	*ret_status = is_all ? PLAN_ALL_PLACED : PLAN_NOT_ALL;
	return result;
}
