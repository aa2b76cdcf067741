/* SPDX-License-Identifier: Apache-2.0 */
/* POST /filter: the node for a pod, and its devices there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/assignment.h"
#include "scheduler/extender.h"
#include "scheduler/filter.h"
#include "scheduler/filter_events.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define LOG_TOPIC	 LOG_PODS

#define LABEL_MOST_BYTES 63 /* of a label's value */

/* A promise that is being written. */
struct filter_task {
	struct extender *extender;
	struct http_call *http; /* NULL: it is not to be answered any more */
	struct kube_call *call;
	struct hold *hold;
	char *node, *message, *path;
	json_t *patch;
	bool is_waiting; /* for the end of what takes an earlier promise off the pod */
	uint64_t began_ns;
	struct filter_task *next, **link;
};

/* nodes, names and failed are taken; NULL stands for null. */
static json_t *result_of(json_t *nodes, json_t *names, json_t *failed, const char *error)
{
	return json_pack("{s:o?, s:o?, s:o?, s:n, s:s%}", "Nodes", nodes, "NodeNames", names,
		"FailedNodes", failed, "FailedAndUnresolvableNodes", "Error", error,
		strnlen(error, 1000));
}

static void refuse(
	struct extender *extender, struct http_call *call, uint64_t began_ns, const char *why)
{
	measure_add(extender->measure, MEASURE_FILTER, began_ns, true);
	extender_answer(call, result_of(NULL, NULL, NULL, why));
}

/* The hold stays: who ends a task says what becomes of it. */
static void end_task(struct filter_task *task)
{
	kube_cancel(task->call);
	if (task->is_waiting)
		holds_await_clear(
			cluster_holds(task->extender->cluster), task->hold->uid, NULL, NULL);
	*task->link = task->next;
	if (task->next)
		task->next->link = task->link;
	task->hold->filter = NULL;
	free(task->node);
	free(task->message);
	free(task->path);
	json_decref(task->patch);
	free(task);
}

static void tell(struct extender *extender, const struct hold *hold, const char *message)
{
	event_tell(extender->events, &(struct event){.namespace = hold->namespace,
					     .pod = hold->name,
					     .uid = hold->uid,
					     .reason = "FilteringSucceed",
					     .message = message});
}

static void was_written(void *context, const struct kube_result *result)
{
	struct filter_task *task = context;
	struct extender *extender = task->extender;
	struct hold *hold = task->hold;
	struct http_call *http = task->http;
	json_t *names = json_pack("[s]", task->node);
	uint64_t began_ns = task->began_ns;
	bool is_lost = !hold->is_kept;

	task->call = NULL;
	if (!result->outcome && !is_lost)
		tell(extender, hold, task->message);
	end_task(task);
	if (result->outcome || is_lost) {
		json_decref(names);
		if (is_lost)
			holds_forget(cluster_holds(extender->cluster), hold);
		else /* it may have been written all the same */
			holds_end(cluster_holds(extender->cluster), hold,
				result->outcome != KUBE_E_NOT_FOUND);
		if (http)
			refuse(extender, http, began_ns,
				is_lost ? "the pod is gone" : result->words);
		return;
	}
	measure_add(extender->measure, MEASURE_FILTER, began_ns, false);
	if (http)
		extender_answer(http, result_of(NULL, names, json_object(), ""));
	else
		json_decref(names);
}

/* What an earlier promise left on the pod, and this one does not say, is removed. */
static json_t *patch_of(const struct hold *hold, bool had_instances)
{
	const char *node = hold_node(hold);
	json_t *annotations = json_copy(hold->annotations);

	if (annotations && had_instances && !json_object_get(annotations, RESERVATION_INSTANCES))
		json_object_set_new(annotations, RESERVATION_INSTANCES, json_null());
	if (strlen(node) > LABEL_MOST_BYTES)
		return json_pack(
			"{s:{s:s, s:o}}", "metadata", "uid", hold->uid, "annotations", annotations);
	return json_pack("{s:{s:s, s:o, s:{s:s}}}", "metadata", "uid", hold->uid, "annotations",
		annotations, "labels", RESERVATION_NODE, node);
}

static int send_promise(struct filter_task *task)
{
	task->extender->measure->calls++;
	return kube_patch(task->extender->client, task->path, task->patch, NULL, was_written, task,
		&task->call);
}

static void was_cleared(void *context)
{
	struct filter_task *task = context;

	task->is_waiting = false;
	if (send_promise(task)) {
		task->call = NULL;
		was_written(task,
			&(struct kube_result){.outcome = KUBE_E_UNREACHABLE, .words = "no memory"});
	}
}

static struct filter_task *new_task(
	struct extender *extender, struct hold *hold, bool had_instances, const char *message)
{
	struct filter_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->extender = extender;
	task->hold = hold;
	task->link = &extender->filters;
	task->next = extender->filters;
	if (task->next)
		task->next->link = &task->next;
	extender->filters = task;
	hold->filter = task;
	task->node = strdup(hold_node(hold));
	task->message = strdup(message);
	task->patch = patch_of(hold, had_instances);
	if (asprintf(&task->path, "/api/v1/namespaces/%s/pods/%s", hold->namespace, hold->name) < 0)
		task->path = NULL;
	if (task->node && task->message && task->patch && task->path)
		return task;
	end_task(task);
	return NULL;
}

static int write_promise(struct extender *extender, struct http_call *http, struct hold *hold,
	bool had_instances, const char *message, uint64_t began_ns)
{
	struct filter_task *task = new_task(extender, hold, had_instances, message);

	if (!task)
		return -ENOMEM;
	task->is_waiting =
		holds_await_clear(cluster_holds(extender->cluster), hold->uid, was_cleared, task);
	if (!task->is_waiting && send_promise(task)) {
		task->call = NULL;
		end_task(task);
		return -ENOMEM;
	}
	task->http = http;
	task->began_ns = began_ns;
	http_call_set_data(http, &task->http);
	return 0;
}

/* One request, while it is looked at. */
struct look {
	struct extender *extender;
	struct http_call *http;
	json_t *pod;
	const json_t *names; /* as asked */
	struct demand demand;
	struct filter_request request;
	struct filter_answer answer;
	uint64_t began_ns;
};

static void answer_none(struct look *look)
{
	struct extender *extender = look->extender;
	const struct demand *demand = &look->demand;
	struct holds *holds = cluster_holds(extender->cluster);
	struct hold *hold = holds_find(holds, demand->uid);
	json_t *failed = json_object();

	for (size_t i = 0; i < look->request.name_count; i++)
		json_object_set_new(
			failed, look->request.names[i], json_string(look->answer.reasons[i]));
	nudge_refused(cluster_nudge(extender->cluster));
	filter_events_none(extender->events, demand, &look->request, &look->answer);
	filter_events_count(extender->measure, &look->answer);
	if (hold || demand_annotation(look->pod, ASSIGNMENT_ALLOCATED))
		holds_clear(holds, demand->namespace, demand->name, demand->uid);
	measure_add(extender->measure, MEASURE_FILTER, look->began_ns, false);
	extender_answer(look->http, result_of(NULL, NULL, failed, ""));
}

static void promise(struct look *look)
{
	struct extender *extender = look->extender;
	struct holds *holds = cluster_holds(extender->cluster);
	const char *node = look->request.names[look->answer.chosen];
	_cleanup_free_ char *message = filter_events_found(&look->request, &look->answer);
	bool had_instances = demand_annotation(look->pod, RESERVATION_INSTANCES);
	struct hold *hold = NULL;
	int result = -ENOMEM;

	filter_events_count(extender->measure, &look->answer);
	if (message)
		result = reservation_annotate(
			look->pod, node, look->answer.devices, look->answer.instances, time(NULL));
	if (!result)
		result = holds_keep(holds, look->pod, true, &hold);
	if (!result)
		result = write_promise(
			extender, look->http, hold, had_instances, message, look->began_ns);
	if (!result)
		return;
	if (hold)
		holds_end(holds, hold, false);
	refuse(extender, look->http, look->began_ns, strerror(-result));
}

/* What was promised before is given back: kube-scheduler asks again because it did not come to a binding. */
static const char *give_back(struct extender *extender, const char *uid)
{
	struct hold *hold = holds_find(cluster_holds(extender->cluster), uid);
	struct filter_task *task = hold ? hold->filter : NULL;

	if (!hold)
		return books_has_pod(cluster_books(extender->cluster), uid)
			       ? "the pod is bound already"
			       : NULL;
	if (hold->bind && !extender_abort_bind(extender, hold->bind, "the pod is scheduled anew"))
		return "the pod is being bound";
	if (task) {
		struct http_call *http = task->http;
		uint64_t began_ns = task->began_ns;

		end_task(task);
		if (http)
			refuse(extender, http, began_ns, "the pod was asked for again");
	}
	holds_end(cluster_holds(extender->cluster), hold, false);
	return NULL;
}

static const char **list_names(const json_t *names, size_t *ret_count)
{
	const char **list = calloc(json_array_size(names) + 1, sizeof(*list));
	const json_t *name;
	size_t i;

	*ret_count = 0;
	json_array_foreach(names, i, name) if (list && json_is_string(name)) list[(*ret_count)++] =
		json_string_value(name);
	return list;
}

static void decide(struct look *look)
{
	_cleanup_free_ const char **names = list_names(look->names, &look->request.name_count);
	const char *why = give_back(look->extender, look->demand.uid);
	int result;

	if (why) {
		refuse(look->extender, look->http, look->began_ns, why);
		return;
	}
	look->request.names = names;
	look->request.demand = &look->demand;
	result = names ? filter(cluster_books(look->extender->cluster), &look->request,
				 &look->answer)
		       : -ENOMEM;
	if (result) {
		refuse(look->extender, look->http, look->began_ns, strerror(-result));
		return;
	}
	if (look->answer.chosen == FILTER_NONE)
		answer_none(look);
	else
		promise(look);
	filter_deinit(&look->answer);
}

/* An autoscaler asks whether the pod would fit on nodes that are not there: as they are given, with nothing on them. */
static int simulate(struct look *look, const json_t *items, struct books *books, const char **names)
{
	const struct demand_rules *rules = &look->extender->settings->rules.demand;
	const json_t *node;
	size_t i;

	json_array_foreach(items, i, node)
	{
		struct registry_texts texts = object_read_node(rules, node);
		struct err err = ERR_NULL;

		names[i] = json_string_value(
			json_object_get(json_object_get(node, "metadata"), "name"));
		if (!names[i])
			return -EINVAL;
		texts.devices = demand_annotation(node, REGISTRY_DEVICES);
		if (books_set_node(books, names[i], &texts, &err) == -ENOMEM)
			return -ENOMEM;
	}
	look->request = (struct filter_request){&look->demand, names, json_array_size(items)};
	return filter(books, &look->request, &look->answer);
}

static void answer_simulation(struct look *look, const json_t *items)
{
	size_t chosen = look->answer.chosen;
	json_t *failed = json_object(), *list = json_array();

	for (size_t i = 0; i < look->request.name_count; i++)
		if (look->answer.reasons[i])
			json_object_set_new(failed, look->request.names[i],
				json_string(look->answer.reasons[i]));
	if (chosen != FILTER_NONE)
		json_array_append(list, json_array_get(items, chosen));
	measure_add(look->extender->measure, MEASURE_FILTER, look->began_ns, false);
	extender_answer(look->http,
		result_of(json_pack("{s:{}, s:o}", "metadata", "items", list), NULL, failed, ""));
}

static void decide_simulation(struct look *look, const json_t *nodes)
{
	const json_t *items = json_object_get(nodes, "items");
	_cleanup_free_ const char **names = calloc(json_array_size(items) + 1, sizeof(*names));
	struct books *books = NULL;
	int result = names ? books_new(&books) : -ENOMEM;

	if (!result)
		result = simulate(look, items, books, names);
	if (result)
		refuse(look->extender, look->http, look->began_ns,
			result == -EINVAL ? "a node has no name" : strerror(-result));
	else
		answer_simulation(look, items);
	filter_deinit(&look->answer);
	books_free(books);
}

static bool has_identity(const struct demand *demand)
{
	return *demand->uid && extender_is_name(demand->name) &&
	       extender_is_name(demand->namespace);
}

static void filter_pod(struct look *look, const json_t *arguments)
{
	const json_t *nodes = json_object_get(arguments, "Nodes");
	struct extender *extender = look->extender;
	const char *trouble = extender_trouble(extender);
	struct err err = ERR_NULL;

	if (demand_read(&extender->settings->rules.demand, look->pod, &look->demand, &err)) {
		refuse(extender, look->http, look->began_ns, err.text);
		return;
	}
	if (!look->demand.asks) {
		measure_add(extender->measure, MEASURE_FILTER, look->began_ns, false);
		extender_answer(look->http, result_of(json_incref((json_t *)nodes),
						    json_incref((json_t *)look->names), NULL, ""));
	} else if (json_is_object(nodes)) {
		decide_simulation(look, nodes);
	} else if (!json_is_array(look->names)) {
		refuse(extender, look->http, look->began_ns,
			"extender args have neither Nodes nor NodeNames");
	} else if (!has_identity(&look->demand)) {
		refuse(extender, look->http, look->began_ns,
			"the pod has no namespace, name and uid");
	} else if (trouble) {
		refuse(extender, look->http, look->began_ns, trouble);
	} else {
		decide(look);
	}
	demand_deinit(&look->demand);
}

void extender_filter(struct extender *extender, struct http_call *call)
{
	struct look look = {.extender = extender, .http = call, .began_ns = clock_now_ns()};
	struct err err = ERR_NULL;
	json_t *arguments = extender_read(call, &err);

	look.pod = json_object_get(arguments, "Pod");
	look.names = json_object_get(arguments, "NodeNames");
	if (!arguments)
		refuse(extender, call, look.began_ns, err.text);
	else if (!json_is_object(look.pod) ||
		 !json_is_object(json_object_get(look.pod, "metadata")))
		refuse(extender, call, look.began_ns, "extender args missing pod");
	else
		filter_pod(&look, arguments);
	json_decref(arguments);
}

void extender_stop_filters(struct extender *extender)
{
	while (extender->filters)
		end_task(extender->filters);
}
