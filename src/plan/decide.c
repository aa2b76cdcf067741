/* SPDX-License-Identifier: Apache-2.0 */
/* Where the scheduler would put a pod. */
#include "plan/decide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/assignment.h"
#include "kube/instances.h"
#include "plan/placement.h"
#include "plan/victims.h"
#include "scheduler/filter.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

/* One pod, while it is decided. */
struct look {
	struct world *world;
	const struct decide_request *request;
	json_t *pod, *answer;
	struct demand demand;
	struct fit_pod fit; /* with the room of its namespace */
	const char **names; /* of nodes that kube-scheduler would ask for */
	size_t *places;	    /* of each node in names, or SIZE_MAX */
	size_t name_count;
	struct filter_answer filter;
	struct fit_result *result;
	struct fit_sight *sights;
};

static void set(json_t *object, const char *key, json_t *value)
{
	if (value)
		json_object_set_new(object, key, value);
}

/* Init containers first, as requests are. */
static const char *container_name(const json_t *pod, size_t at)
{
	const json_t *spec = json_object_get(pod, "spec");
	const json_t *inits = json_object_get(spec, "initContainers");
	size_t count = json_array_size(inits);
	const json_t *container =
		at < count ? json_array_get(inits, at)
			   : json_array_get(json_object_get(spec, "containers"), at - count);
	const char *name = json_string_value(json_object_get(container, "name"));

	return name ? name : "";
}

static json_t *describe_request(const struct look *look, size_t at)
{
	static const char *const kinds[] = {
		[FIT_INIT] = "init", [FIT_SIDECAR] = "sidecar", [FIT_APP] = "app"};
	const struct fit_request *request = &look->demand.pod.requests[at];
	json_t *object = json_pack("{s:s, s:s, s:I, s:I}", "container",
		container_name(look->pod, at), "kind", kinds[request->kind], "devices",
		(json_int_t)request->devices, "cores_percent", (json_int_t)request->cores);

	if (request->memory_mib)
		set(object, "memory_mib", json_integer(request->memory_mib));
	else
		set(object, "memory_percent", json_integer(request->percentage));
	return object;
}

static json_t *describe_requests(const struct look *look)
{
	json_t *list = json_array();

	for (size_t i = 0; i < look->demand.pod.request_count; i++)
		if (look->demand.pod.requests[i].devices > 0)
			json_array_append_new(list, describe_request(look, i));
	return list;
}

static json_t *describe_policy(const struct look *look)
{
	const struct demand_rules *rules = &look->world->settings->rules.demand;
	const char *node = demand_annotation(look->pod, "hami.io/node-scheduler-policy");
	const char *device = demand_annotation(look->pod, "hami.io/gpu-scheduler-policy");
	const struct rank_weights *weights = &look->fit.weights;

	return json_pack("{s:s, s:s, s:b, s:{s:I, s:I, s:I}}", "node",
		node ? node : rules->node_policy, "device", device ? device : rules->device_policy,
		"is_numa_bound", look->fit.is_numa_bound, "weights", "slot",
		(json_int_t)weights->slot, "core", (json_int_t)weights->core, "memory",
		(json_int_t)weights->memory);
}

/* What is left of the namespace's quota; NULL: nothing is limited. */
static json_t *describe_room(const struct fit_room *room)
{
	json_t *object = json_object();

	if (room->memory_mib != INT64_MAX)
		set(object, "memory_left_mib", json_integer(room->memory_mib));
	if (room->cores != INT64_MAX)
		set(object, "cores_left_percent", json_integer(room->cores));
	if (json_object_size(object))
		return object;
	json_decref(object);
	return NULL;
}

static json_t *describe_sight(
	const struct look *look, size_t request, const struct fit_sight *sight)
{
	json_t *object = json_pack("{s:s, s:b, s:I, s:I, s:f}", "container",
		container_name(look->pod, request), "would_do", sight->reason == FIT_REASONS,
		"memory_mib", (json_int_t)sight->memory_mib, "cores_percent",
		(json_int_t)sight->cores, "score", sight->score);

	if (sight->reason != FIT_REASONS)
		set(object, "reason", json_string(fit_reason_word(sight->reason)));
	return object;
}

static json_t *describe_device(const struct look *look, const struct fit_node *node, size_t at)
{
	const struct fit_device *device = &node->devices[at];
	json_t *sights = json_array();

	for (size_t i = 0; i < look->fit.request_count; i++) {
		const struct fit_sight *sight = &look->sights[i * node->device_count + at];

		if (sight->is_seen)
			json_array_append_new(sights, describe_sight(look, i, sight));
	}
	return json_pack("{s:I, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
		"index", (json_int_t)at, "uuid", device->uuid, "type", device->model, "mode",
		device->mode, "is_healthy", device->is_healthy, "is_cordoned", device->is_cordoned,
		"slots", (json_int_t)device->all.slots, "slots_used",
		(json_int_t)device->used.slots, "memory_mib", (json_int_t)device->all.memory_mib,
		"memory_used_mib", (json_int_t)device->used.memory_mib, "cores_percent",
		(json_int_t)device->all.cores, "cores_used_percent", (json_int_t)device->used.cores,
		"containers", sights);
}

/* Of nodes that kube-scheduler does not ask for as well. */
static json_t *describe_devices(struct look *look, const char *name)
{
	const struct fit_node *node = books_node(look->world->books, name);
	json_t *list;

	if (!node)
		return NULL;
	memset(look->sights, 0,
		(look->fit.request_count * node->device_count + 1) * sizeof(*look->sights));
	fit_explain(node, &look->fit, look->result, look->sights);
	list = json_array();
	for (size_t i = 0; i < node->device_count; i++)
		json_array_append_new(list, describe_device(look, node, i));
	return list;
}

/* Beside the scheduler's two words, what a person would look for next. */
static const char *why_unregistered(const struct look *look, const json_t *node)
{
	if (!demand_annotation(node, REGISTRY_DEVICES))
		return "no device plugin has registered devices of it";
	if (!object_read_node(&look->world->settings->rules.demand, node).devices)
		return "its kubelet has no slices to give (status.allocatable)";
	return "its register names no device";
}

static void describe_filtered(struct look *look, size_t at, json_t *object, const json_t *node)
{
	size_t place = look->places[at];
	const struct filter_reason *reason = look->filter.reasons[place];
	const char *name = look->names[place];
	char words[FILTER_WORDS_BYTES];

	if (!reason) {
		set(object, "answer",
			json_string(place == look->filter.chosen ? "chosen" : "would_do"));
		set(object, "score", json_real(look->filter.scores[place]));
		return;
	}
	set(object, "answer", json_string("refused"));
	set(object, "by", json_string("vgpu-scheduler"));
	filter_explain(reason, words);
	set(object, "reason", json_string(words));
	if (!books_node(look->world->books, name))
		set(object, "hint", json_string(why_unregistered(look, node)));
}

static json_t *describe_node(struct look *look, size_t at, const char *why)
{
	const struct world_node *node = &look->world->nodes[at];
	json_t *object = json_pack("{s:s}", "node", node->name);

	if (node->is_added)
		set(object, "is_imagined", json_true());
	if (why) {
		set(object, "answer", json_string("excluded"));
		set(object, "by", json_string(node->is_drained ? "drain" : "kube-scheduler"));
		set(object, "reason", json_string(why));
	} else {
		describe_filtered(look, at, object, node->object);
	}
	if (look->request->with_devices)
		set(object, "devices", describe_devices(look, node->name));
	return object;
}

/* Which nodes kube-scheduler would ask for; of the others why not. */
static void find_names(struct look *look, char **ret_why)
{
	const struct world *world = look->world;

	for (size_t i = 0; i < world->node_count; i++) {
		char why[PLACEMENT_WORDS];

		look->places[i] = SIZE_MAX;
		if (world->nodes[i].is_drained) {
			ret_why[i] = strdup("the node is drained");
		} else if (!placement_allows(world->nodes[i].object, look->pod, why)) {
			ret_why[i] = strdup(why);
		} else {
			look->places[i] = look->name_count;
			look->names[look->name_count++] = world->nodes[i].name;
		}
	}
}

static const char *slot_container(const json_t *pod, const struct demand *demand,
	const struct assignment *assignment, size_t slot)
{
	_cleanup_free_ struct assignment_need *needs =
		calloc(demand->pod.request_count + 1, sizeof(*needs));
	_cleanup_free_ size_t *containers = calloc(assignment->count + 1, sizeof(*containers));
	struct err ignored;

	for (size_t i = 0; needs && i < demand->pod.request_count; i++)
		needs[i] = (struct assignment_need){
			demand->pod.requests[i].devices, demand->pod.requests[i].kind != FIT_APP};
	if (!needs || !containers ||
		assignment_match(
			assignment, needs, demand->pod.request_count, containers, &ignored))
		return "";
	return container_name(pod, containers[slot]);
}

static size_t index_of(const struct fit_node *node, const char *uuid)
{
	size_t i = 0;

	while (node && i < node->device_count && strcmp(node->devices[i].uuid, uuid) != 0)
		i++;
	return node && i < node->device_count ? i : SIZE_MAX;
}

static json_t *describe_assigned(
	const struct fit_node *node, const struct assignment_device *device)
{
	size_t index = index_of(node, device->uuid);
	json_t *object = json_pack("{s:s, s:I, s:I}", "uuid", device->uuid, "memory_mib",
		(json_int_t)device->memory_mib, "cores_percent", (json_int_t)device->cores_percent);

	if (index == SIZE_MAX)
		return object;
	set(object, "index", json_integer((json_int_t)index));
	set(object, "type", json_string(node->devices[index].model));
	return object;
}

static void add_profile(
	json_t *object, const struct instances *instances, size_t slot, size_t device)
{
	for (size_t i = 0; i < instances->count; i++)
		if (instances->at[i].container == slot && instances->at[i].device == device)
			set(object, "mig_profile", json_string(instances->at[i].profile));
}

json_t *decide_devices(struct world *world, const json_t *pod, const char *node_name,
	const char *devices, const char *instances_text)
{
	const struct fit_node *node = books_node(world->books, node_name);
	struct assignment assignment = ASSIGNMENT_NULL;
	struct instances instances = INSTANCES_NULL;
	struct demand demand = {0};
	struct err ignored;
	json_t *list = NULL;

	if (!assignment_decode(devices, &assignment, &ignored) &&
		!instances_decode_some(instances_text, &instances) &&
		!demand_read_containers(&world->settings->rules.demand, pod, &demand))
		list = json_array();
	for (size_t slot = 0; list && slot < assignment.count; slot++)
		for (size_t i = 0; i < assignment.slots[slot].count; i++) {
			json_t *object =
				describe_assigned(node, &assignment.slots[slot].devices[i]);

			set(object, "container",
				json_string(slot_container(pod, &demand, &assignment, slot)));
			add_profile(object, &instances, slot, i);
			json_array_append_new(list, object);
		}
	demand_deinit(&demand);
	instances_deinit(&instances);
	assignment_deinit(&assignment);
	return list;
}

/* What is decided counts from now on, as the scheduler counts it. */
static int enter(struct look *look, const char *node)
{
	struct reservation *reservation;
	struct err ignored;
	int result = reservation_annotate(
		look->pod, node, look->filter.devices, look->filter.instances, look->world->now_s);

	if (!result)
		result = reservation_read(
			&look->world->settings->rules.demand, look->pod, &reservation, &ignored);
	if (result)
		return -ENOMEM;
	result = books_set_pod(look->world->books, reservation_pod(reservation));
	reservation_free(reservation);
	return result;
}

static json_t *describe_nodes(struct look *look, char **why)
{
	json_t *list = json_array();

	for (size_t i = 0; i < look->world->node_count; i++)
		json_array_append_new(list, describe_node(look, i, why[i]));
	return list;
}

static int describe_victims(struct look *look)
{
	const struct filter_request request = {&look->demand, look->names, look->name_count};
	json_t *object;
	int result = victims_find(look->world, look->pod, &request, &object);

	if (!result)
		set(look->answer, "preemption", object);
	return result;
}

static int finish(struct look *look, char **why, enum decide_outcome *ret_outcome)
{
	size_t chosen = look->filter.chosen;

	set(look->answer, "nodes", describe_nodes(look, why));
	*ret_outcome = chosen == FILTER_NONE ? DECIDE_PENDING : DECIDE_PLACED;
	set(look->answer, "state", json_string(chosen == FILTER_NONE ? "pending" : "placed"));
	if (chosen == FILTER_NONE)
		return describe_victims(look);
	set(look->answer, "node", json_string(look->names[chosen]));
	set(look->answer, "devices",
		decide_devices(look->world, look->pod, look->names[chosen], look->filter.devices,
			look->filter.instances));
	return look->request->enters ? enter(look, look->names[chosen]) : 0;
}

static int refuse(struct look *look, const char *why, enum decide_outcome *ret_outcome)
{
	*ret_outcome = DECIDE_REFUSED;
	set(look->answer, "state", json_string("refused"));
	set(look->answer, "why", json_string(why));
	return 0;
}

static int ask_filter(struct look *look, enum decide_outcome *ret_outcome)
{
	size_t count = look->world->node_count;
	_cleanup_free_ char **why = calloc(count + 1, sizeof(*why));
	_cleanup_free_ const char **names = calloc(count + 1, sizeof(*names));
	_cleanup_free_ size_t *places = calloc(count + 1, sizeof(*places));
	int result = -ENOMEM;

	look->names = names;
	look->places = places;
	if (why && names && places) {
		find_names(look, why);
		result = filter(look->world->books,
			&(struct filter_request){&look->demand, names, look->name_count},
			&look->filter);
	}
	if (!result)
		result = finish(look, why, ret_outcome);
	else if (result == -EINVAL)
		result = refuse(look, "the chosen device's UUID is too long for an annotation",
			ret_outcome);
	filter_deinit(&look->filter);
	for (size_t i = 0; why && i < count; i++)
		free(why[i]);
	return result;
}

static int ask(struct look *look, enum decide_outcome *ret_outcome)
{
	const struct world *world = look->world;
	_cleanup_free_ struct fit_result *result = malloc(sizeof(*result));
	_cleanup_free_ struct fit_sight *sights =
		calloc(look->demand.pod.request_count * FIT_DEVICES + 1, sizeof(*sights));

	if (!result || !sights)
		return -ENOMEM;
	look->result = result;
	look->sights = sights;
	look->fit = look->demand.pod;
	look->fit.room = books_room(world->books, look->demand.namespace);
	set(look->answer, "asks", describe_requests(look));
	set(look->answer, "policy", describe_policy(look));
	set(look->answer, "quota", describe_room(&look->fit.room));
	return ask_filter(look, ret_outcome);
}

static int say_others(struct look *look, const char *why, enum decide_outcome *ret_outcome)
{
	*ret_outcome = DECIDE_OTHERS;
	set(look->answer, "state", json_string("not_ours"));
	set(look->answer, "why", json_string(why));
	return 0;
}

static int decide_admitted(struct look *look, enum decide_outcome *ret_outcome)
{
	struct err err = ERR_NULL;
	int result =
		demand_read(&look->world->settings->rules.demand, look->pod, &look->demand, &err);

	if (result)
		return result == -ENOMEM ? result : refuse(look, err.text, ret_outcome);
	result = look->demand.asks
			 ? ask(look, ret_outcome)
			 : say_others(look, "it asks for no device: kube-scheduler alone decides",
				   ret_outcome);
	demand_deinit(&look->demand);
	return result;
}

/* A pod that is new goes the way that the API server sends it. */
static int pass_webhook(struct look *look, struct world_pod *pod, bool *ret_is_denied,
	enum decide_outcome *ret_outcome)
{
	const char *namespace = object_text(pod->object, "namespace"), *remark;
	char denied[ADMISSION_WORDS_BYTES];
	json_t *changed;
	int result = admission_change(&look->world->settings->rules, look->world->books, namespace,
		pod->object, &changed, denied, &remark);

	if (result)
		return result;
	json_decref(pod->object);
	pod->object = changed;
	look->pod = changed;
	if (remark)
		set(look->answer, "remark", json_string(remark));
	*ret_is_denied = *denied;
	return *denied ? refuse(look, denied, ret_outcome) : 0;
}

int decide(struct world *world, struct world_pod *pod, const struct decide_request *request,
	enum decide_outcome *ret_outcome, json_t **ret_answer)
{
	struct look look = {.world = world, .request = request, .pod = pod->object};
	bool is_denied = false;
	int result = 0;

	look.answer = json_pack("{s:s, s:s}", "namespace", object_text(pod->object, "namespace"),
		"pod", object_text(pod->object, "name"));
	if (!look.answer)
		return -ENOMEM;
	if (pod->is_moved)
		set(look.answer, "is_moved", json_true());
	if (pod->is_new)
		result = pass_webhook(&look, pod, &is_denied, ret_outcome);
	if (!result && !is_denied)
		result = decide_admitted(&look, ret_outcome);
	if (result)
		json_decref(look.answer);
	else
		*ret_answer = look.answer;
	return result;
}
