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
#include "scheduler/arguments.h"
#include "scheduler/extender.h"
#include "scheduler/filter.h"
#include "scheduler/filter_events.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"
#include "scheduler/waiting.h"

#define LOG_TOPIC LOG_PODS

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

/* One request, while it is looked at. */
struct look {
	struct extender *extender;
	struct http_call *http;
	json_t *pod;
	struct arguments arguments;
	struct demand demand;
	struct filter_request request;
	struct filter_answer answer;
	uint64_t began_ns;
};

static void add_failed(json_t *failed, const struct look *look, size_t at)
{
	char words[FILTER_WORDS_BYTES];

	filter_explain(look->answer.reasons[at], words);
	json_object_set_new(failed, look->request.names[at], json_string(words));
}

/* Whether JSON has it as it is. */
static bool is_plain(const char *name)
{
	while (*name >= ' ' && *name < 127 && *name != '"' && *name != '\\')
		name++;
	return !*name;
}

static void write_name(FILE *file, const char *name)
{
	json_t *text;

	if (is_plain(name)) {
		putc_unlocked('"', file);
		fputs_unlocked(name, file);
		putc_unlocked('"', file);
		return;
	}
	text = json_string(name);
	json_dumpf(text, file, JSON_ENCODE_ANY);
	json_decref(text);
}

/* result_of() with a reason for each node, of which there may be thousands that are mostly the same. */
static void write_failed(const struct look *look, FILE *file)
{
	const struct filter_reason *before = NULL;
	char words[FILTER_WORDS_BYTES] = "";

	fputs("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{", file);
	for (size_t i = 0; i < look->request.name_count; i++) {
		const struct filter_reason *reason = look->answer.reasons[i];

		if (reason != before)
			filter_explain(reason, words);
		before = reason;
		if (i)
			putc_unlocked(',', file);
		write_name(file, look->request.names[i]);
		fputs_unlocked(":\"", file);
		fputs_unlocked(words, file);
		putc_unlocked('"', file);
	}
	fputs("},\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}", file);
}

static void answer_failed(struct look *look)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	bool is_written = false;

	if (file) {
		write_failed(look, file);
		is_written = !ferror(file);
		is_written &= !fclose(file);
	}
	if (is_written)
		http_answer(look->http, 200, "application/json", text, bytes);
	else
		extender_answer(look->http, NULL);
}

static void answer_none(struct look *look)
{
	struct extender *extender = look->extender;
	const struct demand *demand = &look->demand;
	struct holds *holds = cluster_holds(extender->cluster);
	struct hold *hold = holds_find(holds, demand->uid);

	nudge_refused(cluster_nudge(extender->cluster));
	filter_events_none(extender->events, demand, &look->request, &look->answer);
	filter_events_count(extender->measure, &look->answer);
	waiting_note(extender->waiting, &look->request, &look->answer, time(NULL));
	if (hold || demand_annotation(look->pod, ASSIGNMENT_ALLOCATED))
		holds_clear(holds, &(struct promise_pod){demand->namespace, demand->name,
					   demand->uid, object_text(look->pod, "resourceVersion")});
	measure_add(extender->measure, MEASURE_FILTER, look->began_ns, false);
	answer_failed(look);
}

static void answer_found(struct look *look, const char *node, const char *message)
{
	struct extender *extender = look->extender;

	event_tell(extender->events, &(struct event){.namespace = look->demand.namespace,
					     .pod = look->demand.name,
					     .uid = look->demand.uid,
					     .reason = "FilteringSucceed",
					     .message = message});
	measure_add(extender->measure, MEASURE_FILTER, look->began_ns, false);
	extender_answer(look->http, result_of(NULL, json_pack("[s]", node), json_object(), ""));
}

/* Its writing is waited for by the bind. */
static void promise(struct look *look)
{
	struct extender *extender = look->extender;
	struct holds *holds = cluster_holds(extender->cluster);
	const char *name = look->request.names[look->answer.chosen];
	const struct cluster_node *node = cluster_node(extender->cluster, name);
	_cleanup_free_ char *message = filter_events_found(&look->request, &look->answer);
	json_t *before = promise_copy(look->pod);
	bool is_dirty = json_object_size(before);
	struct hold *hold = NULL;
	int result = -ENOMEM;

	json_decref(before);
	filter_events_count(extender->measure, &look->answer);
	if (message)
		result = reservation_annotate(
			look->pod, name, look->answer.devices, look->answer.instances, time(NULL));
	if (!result)
		result = holds_keep(holds, look->pod, true, &hold);
	if (!result) {
		hold->others = node ? node->others : 0;
		hold->is_dirty |= is_dirty;
		result = holds_write(holds, hold);
	}
	if (!result) {
		waiting_settle(extender->waiting, look->demand.uid);
		answer_found(look, name, message);
		return;
	}
	if (hold)
		holds_end(holds, hold, false);
	refuse(extender, look->http, look->began_ns, strerror(-result));
}

/* What was promised before is given back: kube-scheduler asks again because it did not come to a binding. */
static const char *give_back(struct extender *extender, const char *uid)
{
	struct holds *holds = cluster_holds(extender->cluster);
	struct hold *hold = holds_find(holds, uid);

	if (!hold)
		return books_has_pod(cluster_books(extender->cluster), uid)
			       ? "the pod is bound already"
			       : NULL;
	if (hold->bind && !extender_abort_bind(hold->bind, "the pod is scheduled anew"))
		return "the pod is being bound";
	hold = holds_find(holds, uid);
	if (hold)
		holds_end(holds, hold, false);
	return NULL;
}

static void decide(struct look *look)
{
	const char *why = give_back(look->extender, look->demand.uid);
	int result;

	if (why) {
		refuse(look->extender, look->http, look->began_ns, why);
		return;
	}
	look->request = (struct filter_request){
		&look->demand, look->arguments.names, look->arguments.name_count};
	result = filter(cluster_books(look->extender->cluster), &look->request, &look->answer);
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
			add_failed(failed, look, i);
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
	return *demand->uid && object_is_name(demand->name) && object_is_name(demand->namespace);
}

static void filter_pod(struct look *look)
{
	const json_t *nodes = json_object_get(look->arguments.object, "Nodes");
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
						    arguments_list(&look->arguments), NULL, ""));
	} else if (json_is_object(nodes)) {
		decide_simulation(look, nodes);
	} else if (!look->arguments.has_names) {
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
	size_t bytes;
	const char *body = http_call_body(call, &bytes);
	int result = arguments_read(body, bytes, &look.arguments, &err);

	look.pod = json_object_get(look.arguments.object, "Pod");
	if (result)
		refuse(extender, call, look.began_ns, err.text);
	else if (!json_is_object(look.pod) ||
		 !json_is_object(json_object_get(look.pod, "metadata")))
		refuse(extender, call, look.began_ns, "extender args missing pod");
	else
		filter_pod(&look);
	arguments_deinit(&look.arguments);
}
