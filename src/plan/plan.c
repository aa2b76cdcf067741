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

/* What is shown of answers, of which each is as large as the cluster and is not kept. */
struct view {
	const struct options *options;
	bool is_all, is_any;
	json_t *rows;  /* for the table: answers without their nodes */
	FILE *details; /* into the text */
	char *text;
	size_t bytes;
	struct show_words words;
};

static void write_json(const struct view *view, const json_t *answer)
{
	fputs(view->is_any ? ",\n" : "{\"pods\": [\n", stdout);
	json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
}

/* Takes the answer. */
static int show(struct view *view, json_t *answer)
{
	int result = answer ? 0 : -ENOMEM;

	if (!result && view->options->is_json) {
		write_json(view, answer);
	} else if (!result) {
		fputc('\n', view->details);
		show_answer(view->details, answer, view->options->with_scores);
		show_note_words(&view->words, answer);
		json_object_del(answer, "nodes");
		result = json_array_append(view->rows, answer) ? -ENOMEM : 0;
	}
	view->is_any = true;
	json_decref(answer);
	return result;
}

/* Of a cluster's pods, those that need no device are left out. */
static int answer_pod(struct view *view, struct world *world, struct world_pod *pod)
{
	const struct options *options = view->options;
	const struct decide_request request = {options->is_json || options->with_scores, true};
	enum decide_outcome outcome;
	json_t *answer;
	int result;

	if (pod->state == WORLD_RUNS)
		return 0;
	if (pod->state != WORLD_WAITS)
		return show(view, describe_settled(world, pod));
	result = decide(world, pod, &request, &outcome, &answer);
	if (result)
		return result;
	if (outcome == DECIDE_PENDING || outcome == DECIDE_REFUSED)
		view->is_all = false;
	if (outcome != DECIDE_OTHERS || pod->is_new)
		return show(view, answer);
	json_decref(answer);
	return 0;
}

static void end_json(const struct view *view)
{
	printf("%s],\n\"is_all_placed\": %s}\n", view->is_any ? "\n" : "{\"pods\": [",
		view->is_all ? "true" : "false");
}

static void end_text(struct view *view)
{
	if (!view->is_any) {
		puts("no pod waits for a device");
		return;
	}
	show_table(stdout, view->rows);
	fflush(view->details);
	fwrite(view->text, 1, view->bytes, stdout);
	show_words(stdout, &view->words);
	if (view->options->with_scores)
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
	struct view view = {.options = options, .is_all = true, .rows = json_array()};
	struct world *world = &load->world;
	int result;

	view.details = open_memstream(&view.text, &view.bytes);
	result = view.rows && view.details ? 0 : -ENOMEM;
	world_sort(world);
	for (size_t i = 0; i < world->pod_count && !result; i++)
		result = answer_pod(&view, world, &world->pods[i]);
	if (result)
		err_set(err, -result, "no memory");
	else if (options->is_json)
		end_json(&view);
	else
		end_text(&view);
	if (view.details)
		fclose(view.details);
	free(view.text);
	json_decref(view.rows);
	*ret_status = view.is_all ? PLAN_ALL_PLACED : PLAN_NOT_ALL;
	return result;
}
