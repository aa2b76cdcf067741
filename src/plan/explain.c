/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu explain: why a pod waits, or where it is and what it has there. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "kube/assignment.h"
#include "plan/decide.h"
#include "plan/events.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "scheduler/nodelock.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define SECOND_NS 1000000000u

struct story {
	const struct options *options;
	struct load *load;
	struct world *world;
	json_t *pod; /* the object */
	json_t *whole, *findings, *locks;
	bool is_well; /* it runs, or would be placed */
};

static void find(struct story *story, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void find(struct story *story, const char *format, ...)
{
	char text[600];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	json_array_append_new(story->findings, json_string(text));
}

static const json_t *find_object(const struct load *load, const char *namespace, const char *name)
{
	const struct reader_list *const lists[] = {&load->live_objects, &load->objects};

	for (size_t list = 0; list < ARRAY_SIZE(lists); list++)
		for (size_t i = 0; i < lists[list]->count; i++) {
			const json_t *object = lists[list]->at[i].object;
			const char *its = object_text(object, "namespace");

			if (!strcmp(json_string_value(json_object_get(object, "kind")), "Pod") &&
				!strcmp(object_text(object, "name"), name) &&
				!strcmp(*its ? its : load->world.namespace, namespace))
				return object;
		}
	return NULL;
}

static struct world_pod *find_pod(struct world *world, const json_t *object)
{
	for (size_t i = 0; i < world->pod_count; i++) {
		const json_t *other = world->pods[i].object;

		if (!strcmp(object_text(other, "name"), object_text(object, "name")) &&
			!strcmp(object_text(other, "namespace"),
				*object_text(object, "namespace") ? object_text(object, "namespace")
								  : world->namespace))
			return &world->pods[i];
	}
	return NULL;
}

/* The lock of a node that the pod is, or may be, bound to. */
static void tell_lock(struct story *story, const char *name)
{
	const struct world_node *node = world_find_node(story->world, name);
	const char *text = node ? demand_annotation(node->object, NODELOCK_ANNOTATION) : NULL;
	int64_t now_s = story->world->now_s, age_s;
	struct nodelock lock;
	bool holds;

	if (!nodelock_parse(text, &lock))
		return;
	holds = nodelock_judge(&lock, name, find_object(story->load, lock.namespace, lock.name),
			now_s, 0,
			(int64_t)(story->world->settings->lock_ns / SECOND_NS)) == NODELOCK_HELD;
	age_s = lock.set_s == INT64_MAX ? -1 : now_s - lock.set_s;
	json_array_append_new(story->locks,
		json_pack("{s:s, s:s, s:s, s:I, s:b}", "node", name, "namespace", lock.namespace,
			"pod", lock.name, "age_s", (json_int_t)age_s, "is_held", holds));
	find(story, "node %s is locked %s%.60s%s%.200s, since %lld s: %s", name,
		*lock.name ? "by " : "by nobody who is named", lock.namespace,
		*lock.name ? "/" : "", lock.name, (long long)age_s,
		nodelock_is_of(&lock, object_text(story->pod, "namespace"),
			object_text(story->pod, "name"))
			? "it is this pod's own"
		: holds ? "a bind waits for it"
			: "it may be taken over");
}

static void tell_locks(struct story *story, const json_t *nodes)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
	{
		const char *answer = json_string_value(json_object_get(node, "answer"));

		if (!strcmp(answer, "chosen") || !strcmp(answer, "would_do"))
			tell_lock(story, json_string_value(json_object_get(node, "node")));
	}
}

static void tell_gates(struct story *story)
{
	const json_t *spec = json_object_get(story->pod, "spec"), *gate;
	size_t i;

	json_array_foreach(json_object_get(spec, "schedulingGates"), i, gate)
	{
		const char *name = json_string_value(json_object_get(gate, "name"));

		story->is_well = false;
		find(story,
			"kube-scheduler does not look at it until its scheduling gate %.200s is "
			"removed",
			name ? name : "?");
	}
}

/* The webhook gives a container that only says how much of a device the device itself. */
static void tell_webhook(struct story *story)
{
	const struct demand_rules *rules = &story->world->settings->rules.demand;
	const json_t *containers =
			     json_object_get(json_object_get(story->pod, "spec"), "containers"),
		     *container;
	size_t i;

	json_array_foreach(containers, i,
		container) if (!demand_is_asked(container, rules->count) &&
			       (demand_is_asked(container, rules->memory) ||
				       demand_is_asked(container, rules->cores))) find(story,
		"a container asks for %s or %s and not for %s: the webhook has not seen this pod",
		rules->memory, rules->cores, rules->count);
}

static void count_before(struct story *story, const struct world_pod *pod)
{
	size_t before = 0;

	for (const struct world_pod *other = story->world->pods; other < pod; other++)
		before += other->state == WORLD_WAITS;
	if (before)
		find(story,
			"%zu pod%s wait%s before it, by priority and age; what they will take is "
			"not "
			"counted here",
			before, before == 1 ? "" : "s", before == 1 ? "s" : "");
}

static int tell_waiting(struct story *story, struct world_pod *pod)
{
	const struct decide_request request = {true, false};
	const char *namespace = object_text(pod->object, "namespace"), *scheduler;
	enum decide_outcome outcome;
	json_t *answer;
	int result;

	if (!*namespace)
	namespace = story->world->namespace;
	result = decide(story->world, pod, &request, &outcome, &answer);
	if (result)
		return result;
	story->is_well = outcome == DECIDE_PLACED || outcome == DECIDE_OTHERS;
	json_object_set_new(story->whole, "answer", answer);
	scheduler = json_string_value(
		json_object_get(json_object_get(pod->object, "spec"), "schedulerName"));
	find(story, "it waits; kube-scheduler serves it by its profile %.100s",
		scheduler ? scheduler : "default-scheduler");
	tell_webhook(story);
	tell_gates(story);
	count_before(story, pod);
	if (outcome == DECIDE_PLACED)
		find(story, "as the cluster is now, it would be placed: see its events for what "
			    "holds it up");
	tell_locks(story, json_object_get(answer, "nodes"));
	return 0;
}

static void tell_promise(struct story *story)
{
	const json_t *annotations =
		json_object_get(json_object_get(story->pod, "metadata"), "annotations");
	const char *node = demand_annotation(story->pod, RESERVATION_NODE);

	story->is_well = true;
	json_object_set_new(story->whole, "node", json_string(node));
	find(story, "devices of node %.200s are kept for it since %lld s; its binding comes next",
		node, (long long)(story->world->now_s - reservation_time_s(annotations)));
	tell_lock(story, node);
}

/* What its annotations say, beside what the node has registered and what the books count. */
static void compare_books(struct story *story, const char *node, const json_t *devices)
{
	const struct fit_node *known = books_node(story->world->books, node);
	const json_t *device;
	size_t i;

	if (!known)
		find(story, "no device of node %.200s is registered now", node);
	json_array_foreach(devices, i, device)
	{
		const json_t *index = json_object_get(device, "index");
		const struct fit_device *its;

		if (!index && known)
			find(story, "device %.100s is not registered on its node now",
				json_string_value(json_object_get(device, "uuid")));
		if (!index)
			continue;
		its = &known->devices[json_integer_value(index)];
		if (!its->is_healthy)
			find(story, "device %lld is not healthy",
				(long long)json_integer_value(index));
		if (its->used.memory_mib > its->all.memory_mib ||
			its->used.slots > its->all.slots || its->used.cores > its->all.cores)
			find(story,
				"device %lld is promised more than it has: %lld of %lld MiB, %lld "
				"of %lld %%, %lld of %lld slices",
				(long long)json_integer_value(index),
				(long long)its->used.memory_mib, (long long)its->all.memory_mib,
				(long long)its->used.cores, (long long)its->all.cores,
				(long long)its->used.slots, (long long)its->all.slots);
	}
}

static void tell_phase(struct story *story, const char *node)
{
	const char *phase = demand_annotation(story->pod, "hami.io/bind-phase");

	if (!phase)
		return;
	json_object_set_new(story->whole, "bind_phase", json_string(phase));
	if (!strcmp(phase, "success"))
		return;
	story->is_well = story->is_well && strcmp(phase, "failed") != 0;
	if (!strcmp(phase, "failed"))
		find(story, "the device plugin could not give it its devices (bind-phase failed); "
			    "see its events");
	else
		find(story, "it waits for the device plugin of its node (bind-phase %.40s)", phase);
	tell_lock(story, node);
}

static int tell_bound(struct story *story)
{
	const char *node = object_node(story->pod);
	const char *promised = demand_annotation(story->pod, RESERVATION_NODE);
	struct reservation *reservation = NULL;
	struct demand demand = {0};
	struct err err = ERR_NULL;
	json_t *devices;
	int result =
		demand_read_containers(&story->world->settings->rules.demand, story->pod, &demand);

	if (result)
		return result;
	story->is_well = true;
	find(story, "it is bound to node %.200s", node);
	json_object_set_new(story->whole, "node", json_string(node));
	result = reservation_read_bound(
		&story->world->settings->rules.demand, story->pod, &reservation, &err);
	reservation_free(reservation);
	if (result == -EINVAL)
		find(story, "what its annotations say is not understood, and not counted: %.300s",
			err.text);
	else if (promised && strcmp(promised, node) != 0)
		find(story, "its annotations name node %.200s, so they count for nothing",
			promised);
	else if (result == -ENOENT && demand.asks)
		find(story, "it asks for devices, and its annotations give it none");
	else if (result == -ENOENT)
		find(story, "it asks for no device");
	demand_deinit(&demand);
	if (!result) {
		devices = decide_devices(story->world, story->pod, node,
			demand_annotation(story->pod, ASSIGNMENT_ALLOCATED),
			demand_annotation(story->pod, RESERVATION_INSTANCES));
		json_object_set_new(story->whole, "devices", devices);
		compare_books(story, node, devices);
	}
	tell_phase(story, node);
	return result == -ENOMEM ? result : 0;
}

static int tell(struct story *story)
{
	struct world_pod *pod = find_pod(story->world, story->pod);
	const char *phase =
		json_string_value(json_object_get(json_object_get(story->pod, "status"), "phase"));

	if (*object_text(story->pod, "deletionTimestamp"))
		find(story, "it is being deleted");
	if (object_is_over(story->pod)) {
		find(story, "it has ended (%.20s), and takes nothing", phase);
		return 0;
	}
	if (*object_node(story->pod))
		return tell_bound(story);
	if (pod && pod->state == WORLD_PROMISED)
		tell_promise(story);
	return pod && pod->state == WORLD_WAITS ? tell_waiting(story, pod) : 0;
}

static void write_text(const struct story *story)
{
	const json_t *answer = json_object_get(story->whole, "answer"), *finding;
	struct show_words words = {{false}};
	size_t i;

	show_text(stdout, story->whole, "namespace");
	putchar('/');
	show_text(stdout, story->whole, "pod");
	putchar('\n');
	json_array_foreach(story->findings, i, finding)
	{
		_cleanup_free_ char *text = strdup(json_string_value(finding));

		if (text)
			text_put(stdout, text);
		putchar('\n');
	}
	show_devices(stdout, json_object_get(story->whole, "devices"));
	if (answer) {
		putchar('\n');
		show_answer(stdout, answer, story->options->with_scores);
		show_note_words(&words, answer);
		show_words(stdout, &words);
		puts("\nOf kube-scheduler, cordon, taints, nodeSelector and node affinity are "
		     "looked "
		     "at; its other\nplugins (processors, memory, volumes, spreading) are not "
		     "asked.");
	}
	events_show(stdout, json_object_get(story->whole, "events"));
}

static int tell_all(struct story *story, struct err *err)
{
	json_t *events;
	int result = tell(story);

	if (result)
		return err_set(err, -result, "no memory");
	if (!story->load->live)
		return 0;
	result = events_read(story->load->live, story->pod, &events, err);
	if (result) {
		/* the rest is worth telling all the same */
		find(story, "its events could not be read: %.300s", err->text);
		*err = (struct err)ERR_NULL;
		return 0;
	}
	json_object_set_new(story->whole, "events", events);
	return 0;
}

int explain_show(const struct options *options, struct load *load, int *ret_status, struct err *err)
{
	struct story story = {.options = options, .load = load, .world = &load->world};
	const json_t *pod = find_object(load, options->namespace, options->pod);
	int result;

	if (!pod)
		return err_set(err, EINVAL, "there is no pod %.200s in namespace %.60s%s%.150s",
			options->pod, options->namespace, load->live ? " at " : "",
			load->live ? live_server(load->live) : "");
	world_sort(&load->world);
	story.pod = (json_t *)pod;
	story.findings = json_array();
	story.locks = json_array();
	story.whole = json_pack("{s:s, s:s, s:O, s:O}", "namespace", options->namespace, "pod",
		options->pod, "findings", story.findings, "locks", story.locks);
	result = story.whole ? tell_all(&story, err) : err_set(err, ENOMEM, "no memory");
	if (!result && options->is_json) {
		json_object_set_new(story.whole, "is_well", json_boolean(story.is_well));
		json_dumpf(story.whole, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else if (!result) {
		write_text(&story);
	}
	json_decref(story.findings);
	json_decref(story.locks);
	json_decref(story.whole);
	*ret_status = story.is_well ? PLAN_ALL_PLACED : PLAN_NOT_ALL;
	return result;
}
