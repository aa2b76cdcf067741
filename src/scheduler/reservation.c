/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod takes of a node's devices, as its annotations say. */
#include "scheduler/reservation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "kube/assignment.h"
#include "kube/instances.h"
#include "scheduler/enlarge.h"
#include "scheduler/object.h"

struct reservation {
	struct books_pod pod;
	struct assignment assignment;
	struct books_charge *charges; /* and room for as many devices as the assignment has */
	struct books_instance *instances;
	json_t *instance_texts;
};

static bool has_ended_well(const json_t *status, const char *name)
{
	const json_t *its, *code;
	size_t i;

	json_array_foreach(json_object_get(status, "initContainerStatuses"), i, its)
	{
		const char *other = json_string_value(json_object_get(its, "name"));
		const json_t *state = json_object_get(its, "state");

		if (!name || !other || strcmp(name, other) != 0)
			continue;
		code = json_object_get(json_object_get(state, "terminated"), "exitCode");
		return json_is_integer(code) && !json_integer_value(code);
	}
	return false;
}

/* Sidecars do not end, and are not waited for. */
static bool have_inits_ended(const json_t *pod, const struct demand *demand)
{
	const json_t *list = json_object_get(json_object_get(pod, "spec"), "initContainers"),
		     *container;
	size_t i;

	json_array_foreach(list, i,
		container) if (demand->pod.requests[i].kind == FIT_INIT &&
			       !has_ended_well(json_object_get(pod, "status"),
				       json_string_value(
					       json_object_get(container, "name")))) return false;
	return true;
}

/*
 * The container of each slot. Where what the containers ask for does not tell, and there is a slot for each, it is the one
 * at its place; else each slot is a container of its own that runs beside the others.
 */
static void match(
	const struct assignment *assignment, const struct fit_pod *pod, size_t *ret_containers)
{
	struct assignment_need *needs = calloc(pod->request_count + 1, sizeof(*needs));
	struct err ignored;

	for (size_t i = 0; needs && i < pod->request_count; i++)
		needs[i] = (struct assignment_need){
			pod->requests[i].devices, pod->requests[i].kind != FIT_APP};
	if (!needs ||
		assignment_match(assignment, needs, pod->request_count, ret_containers, &ignored))
		for (size_t i = 0; i < assignment->count; i++)
			ret_containers[i] = assignment->count == pod->request_count ? i : SIZE_MAX;
	free(needs);
}

/* In all its slots; a device that is there twice counts twice. */
static size_t count_devices(const struct assignment *assignment)
{
	size_t count = 0;

	for (size_t i = 0; i < assignment->count; i++)
		count += assignment->slots[i].count;
	return count;
}

static size_t find_charge(struct reservation *reservation, const char *uuid)
{
	size_t i = 0;

	while (i < reservation->pod.charge_count && strcmp(reservation->charges[i].uuid, uuid) != 0)
		i++;
	if (i == reservation->pod.charge_count) {
		reservation->charges[i].uuid = uuid;
		reservation->pod.charge_count++;
	}
	return i;
}

/* One request for each slot, of the kind of its container, and its devices as choices. */
static int sum_up(struct reservation *reservation, const struct fit_pod *pod, bool skip_inits)
{
	const struct assignment *assignment = &reservation->assignment;
	_cleanup_free_ struct fit_request *requests =
		calloc(assignment->count + 1, sizeof(*requests));
	_cleanup_free_ size_t *containers = calloc(assignment->count + 1, sizeof(*containers));
	_cleanup_free_ struct fit_choice *choices =
		calloc(count_devices(assignment) + 1, sizeof(*choices));
	struct fit_pod slots = {.requests = requests, .request_count = assignment->count};
	struct rank_amount amounts[FIT_DEVICES];
	size_t count = 0;

	if (!requests || !containers || !choices)
		return -ENOMEM;
	match(assignment, pod, containers);
	for (size_t i = 0; i < assignment->count; i++) {
		const struct assignment_slot *slot = &assignment->slots[i];

		requests[i].kind = slot->count && containers[i] < pod->request_count
					   ? pod->requests[containers[i]].kind
					   : FIT_APP;
		if (skip_inits && requests[i].kind == FIT_INIT)
			continue;
		for (size_t d = 0; d < slot->count; d++) {
			size_t at = find_charge(reservation, slot->devices[d].uuid);

			if (at >= FIT_DEVICES)
				return -EINVAL;
			choices[count++] = (struct fit_choice){.request = (uint32_t)i,
				.device = (uint32_t)at,
				.memory_mib = slot->devices[d].memory_mib,
				.cores = slot->devices[d].cores_percent};
		}
	}
	fit_sum(&slots, choices, count, reservation->pod.charge_count, amounts);
	for (size_t i = 0; i < reservation->pod.charge_count; i++)
		reservation->charges[i].amount = amounts[i];
	return 0;
}

static bool read_instance(const json_t *object, struct books_instance *ret_instance)
{
	const char *uuid = json_string_value(json_object_get(object, "gpuUUID"));
	const json_t *place = json_object_get(object, "placement");
	json_int_t start = json_integer_value(json_object_get(place, "start"));
	json_int_t size = json_integer_value(json_object_get(place, "size"));

	if (!uuid || !*uuid || start < 0 || start > UINT8_MAX || size <= 0 || size > UINT8_MAX)
		return false;
	*ret_instance = (struct books_instance){uuid, {(uint8_t)start, (uint8_t)size},
		.profile = json_string_value(json_object_get(object, "profile")),
		.given = json_string_value(json_object_get(object, "migUUID")),
		.instance = (unsigned)json_integer_value(json_object_get(object, "gpuInstanceID")),
		.compute =
			(unsigned)json_integer_value(json_object_get(object, "computeInstanceID"))};
	return mig_slices(ret_instance->place);
}

static int read_instances(struct reservation *reservation, const char *text)
{
	const json_t *object;
	size_t i;

	if (!text || !*text)
		return 0;
	reservation->instance_texts = json_loads(text, 0, NULL);
	reservation->pod.has_doubtful_instances = !json_is_array(reservation->instance_texts);
	reservation->instances = calloc(
		json_array_size(reservation->instance_texts) + 1, sizeof(*reservation->instances));
	if (!reservation->instances)
		return -ENOMEM;
	json_array_foreach(reservation->instance_texts, i,
		object) if (read_instance(object,
				    &reservation->instances[reservation->pod.instance_count]))
		reservation->pod.instance_count++;
	else reservation->pod.has_doubtful_instances = true;
	return 0;
}

/* "2026-01-01T00:00:00Z"; 0: it is none. */
static int64_t read_time(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	struct tm tm = {0};

	return text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (int64_t)timegm(&tm) : 0;
}

static struct books_standing read_standing(const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *spec = json_object_get(pod, "spec");
	const char *node = json_string_value(json_object_get(spec, "nodeName"));
	int64_t started_s = read_time(json_object_get(pod, "status"), "startTime");

	return (struct books_standing){.priority = demand_priority(pod),
		.since_s = started_s ? started_s : read_time(metadata, "creationTimestamp"),
		.is_bound = node && *node,
		.is_ending = json_object_get(metadata, "deletionTimestamp")};
}

static int read_all(struct reservation *reservation, const struct demand *demand, const json_t *pod,
	struct err *err)
{
	struct books_pod *books = &reservation->pod;
	int result = assignment_decode(
		demand_annotation(pod, ASSIGNMENT_ALLOCATED), &reservation->assignment, err);

	if (result)
		return result;
	reservation->charges =
		calloc(count_devices(&reservation->assignment) + 1, sizeof(*reservation->charges));
	if (!reservation->charges)
		return err_set(err, ENOMEM, "no memory");
	result = sum_up(reservation, &demand->pod, have_inits_ended(pod, demand));
	if (!result)
		result = read_instances(reservation, demand_annotation(pod, RESERVATION_INSTANCES));
	if (result)
		return err_set(err, -result,
			result == -ENOMEM ? "no memory" : "it was assigned more than 64 devices");
	books->uid = demand->uid;
	books->namespace = demand->namespace;
	books->name = demand->name;
	books->node = demand_annotation(pod, RESERVATION_NODE);
	books->charges = reservation->charges;
	books->instances = reservation->instances;
	books->standing = read_standing(pod);
	return books->charge_count || books->instance_count || books->has_doubtful_instances
		       ? 0
		       : -ENOENT;
}

int reservation_read(const struct demand_rules *rules, const json_t *pod,
	struct reservation **ret_reservation, struct err *err)
{
	const char *node = demand_annotation(pod, RESERVATION_NODE);
	const char *devices = demand_annotation(pod, ASSIGNMENT_ALLOCATED);
	struct reservation *reservation;
	struct demand demand;
	int result;

	if (!node || !*node || !devices || !*devices || object_is_over(pod))
		return -ENOENT;
	result = demand_read_containers(rules, pod, &demand);
	reservation = result ? NULL : calloc(1, sizeof(*reservation));
	if (!reservation) {
		demand_deinit(&demand);
		return err_set(err, ENOMEM, "no memory");
	}
	result = read_all(reservation, &demand, pod, err);
	demand_deinit(&demand);
	if (!result && enlarge_wished(rules, pod, &reservation->pod.wished))
		result = err_set(err, ENOMEM, "no memory");
	if (result)
		reservation_free(reservation);
	else
		*ret_reservation = reservation;
	return result;
}

int reservation_read_bound(const struct demand_rules *rules, const json_t *pod,
	struct reservation **ret_reservation, struct err *err)
{
	const char *promised = demand_annotation(pod, RESERVATION_NODE);

	return promised && !strcmp(promised, object_node(pod))
		       ? reservation_read(rules, pod, ret_reservation, err)
		       : -ENOENT;
}

/* Anybody may write the annotation, and callers add to it. */
#define TIME_MOST_S (INT64_C(1) << 40)

int64_t reservation_time_s(const json_t *annotations)
{
	const char *text = json_string_value(json_object_get(annotations, RESERVATION_TIME));
	int64_t time_s = text ? strtoll(text, NULL, 10) : 0;

	if (time_s < 0)
		return 0;
	return time_s < TIME_MOST_S ? time_s : TIME_MOST_S;
}

const struct books_pod *reservation_pod(const struct reservation *reservation)
{
	return &reservation->pod;
}

void reservation_free(struct reservation *reservation)
{
	if (!reservation)
		return;
	assignment_deinit(&reservation->assignment);
	json_decref(reservation->instance_texts);
	free(reservation->instances);
	free(reservation->charges);
	free(reservation);
}

static int write_devices(const struct fit_node *node, const struct fit_pod *pod,
	const struct fit_result *result, char **ret_text)
{
	_cleanup_free_ struct assignment_device *devices =
		calloc(result->choice_count + 1, sizeof(*devices));
	_cleanup_free_ struct assignment_slot *slots =
		calloc(pod->request_count + 1, sizeof(*slots));
	struct assignment assignment = {slots, pod->request_count, devices};

	if (!devices || !slots)
		return -ENOMEM;
	for (size_t i = 0; i < result->choice_count; i++) {
		const struct fit_choice *choice = &result->choices[i];
		const char *uuid = node->devices[choice->device].uuid;
		struct assignment_slot *slot = &slots[choice->request];

		if (strlen(uuid) >= sizeof(devices[i].uuid))
			return -EINVAL;
		strcpy(devices[i].uuid, uuid);
		strcpy(devices[i].vendor, ASSIGNMENT_VENDOR);
		devices[i].memory_mib = (int32_t)choice->memory_mib;
		devices[i].cores_percent = (int32_t)choice->cores;
		if (!slot->count++)
			slot->devices = &devices[i];
	}
	return assignment_encode(&assignment, ret_text);
}

/* *ret_text is NULL where there are none. */
static int write_instances(
	const struct fit_node *node, const struct fit_result *result, char **ret_text)
{
	struct instances list = {.at = calloc(result->choice_count + 1, sizeof(*list.at))};
	unsigned index = 0;
	int error = list.at ? 0 : -ENOMEM;

	*ret_text = NULL;
	for (size_t i = 0; i < result->choice_count && !error; i++) {
		const struct fit_choice *choice = &result->choices[i];
		struct instance *instance = &list.at[list.count];

		index = i && choice->request == choice[-1].request ? index + 1 : 0;
		if (!choice->mig.profile)
			continue;
		*instance = (struct instance){.container = choice->request,
			.device = index,
			.start = choice->mig.place.start,
			.size = choice->mig.place.size};
		snprintf(instance->gpu, sizeof(instance->gpu), "%s",
			node->devices[choice->device].uuid);
		strcpy(instance->profile, choice->mig.profile->name);
		list.count++;
	}
	if (list.count && !error)
		error = instances_encode(&list, ret_text);
	instances_deinit(&list);
	return error;
}

int reservation_write(const struct fit_node *node, const struct fit_pod *pod,
	const struct fit_result *result, char **ret_devices, char **ret_instances)
{
	int error = write_devices(node, pod, result, ret_devices);

	if (error)
		return error;
	error = write_instances(node, result, ret_instances);
	if (error)
		free(*ret_devices);
	return error;
}

int reservation_annotate(
	json_t *pod, const char *node, const char *devices, const char *instances, int64_t now_s)
{
	json_t *metadata = json_object_get(pod, "metadata"), *annotations;
	char now[24];

	snprintf(now, sizeof(now), "%lld", (long long)now_s);
	annotations = json_object_get(metadata, "annotations");
	annotations = json_is_object(annotations) ? json_copy(annotations) : json_object();
	json_object_del(annotations, RESERVATION_INSTANCES);
	if (json_object_set_new(annotations, RESERVATION_NODE, json_string(node)) ||
		json_object_set_new(annotations, RESERVATION_TIME, json_string(now)) ||
		json_object_set_new(annotations, ASSIGNMENT_TO_ALLOCATE, json_string(devices)) ||
		json_object_set_new(annotations, ASSIGNMENT_ALLOCATED, json_string(devices)) ||
		(instances && json_object_set_new(annotations, RESERVATION_INSTANCES,
				      json_string(instances)))) {
		json_decref(annotations);
		return -ENOMEM;
	}
	return json_object_set_new(metadata, "annotations", annotations) ? -ENOMEM : 0;
}
