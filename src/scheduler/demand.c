/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for. */
#include "scheduler/demand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kube/quantity.h"

#define MEMORY_MOST_MIB INT32_MAX /* of a request; annotations carry 32 bits */
#define LIST_MOST_BYTES 8192 /* of names, which each device is looked for in: about 200 UUIDs */

const char *demand_annotation(const json_t *object, const char *key)
{
	const json_t *metadata = json_object_get(object, "metadata");

	return json_string_value(json_object_get(json_object_get(metadata, "annotations"), key));
}

bool demand_is_asked(const json_t *container, const char *name)
{
	const json_t *resources = json_object_get(container, "resources");

	return name && *name &&
	       (json_object_get(json_object_get(resources, "limits"), name) ||
		       json_object_get(json_object_get(resources, "requests"), name));
}

bool demand_amount(const json_t *container, const char *name, int64_t *ret_value)
{
	const json_t *resources = json_object_get(container, "resources");
	const json_t *limits = json_object_get(resources, "limits");

	if (!name || !*name)
		return false;
	if (json_object_get(limits, name))
		return quantity_of(limits, name, ret_value);
	return quantity_of(json_object_get(resources, "requests"), name, ret_value);
}

/* False: the amount is none that any device could have, and the container counts as one without a request. */
static bool read_memory(
	const struct demand_rules *rules, const json_t *container, struct fit_request *request)
{
	int64_t factor = rules->memory_factor > 1 ? rules->memory_factor : 1, value;

	if (!demand_is_asked(container, rules->memory))
		return true;
	if (!demand_amount(container, rules->memory, &value) || value < 0 ||
		value > MEMORY_MOST_MIB / factor)
		return false;
	request->memory_mib = value * factor;
	return true;
}

static void read_percentage(
	const struct demand_rules *rules, const json_t *container, struct fit_request *request)
{
	int64_t value;

	if (demand_amount(container, rules->percentage, &value) && value > 0)
		request->percentage = value > 100 ? 100 : value;
	if (request->percentage >= 0 || request->memory_mib)
		return;
	if (rules->default_memory_mib)
		request->memory_mib = rules->default_memory_mib;
	else
		request->percentage = 100;
}

static void read_container(
	const struct demand_rules *rules, const json_t *container, struct fit_request *request)
{
	int64_t devices;

	request->percentage = -1;
	if (!demand_amount(container, rules->count, &devices) || devices <= 0 ||
		!read_memory(rules, container, request))
		return;
	read_percentage(rules, container, request);
	if (!demand_amount(container, rules->cores, &request->cores))
		request->cores = rules->default_cores;
	if (request->cores < 0)
		request->cores = 0;
	request->devices = devices;
}

static int read_containers(
	const struct demand_rules *rules, const json_t *spec, struct demand *demand)
{
	static const char *const lists[] = {"initContainers", "containers"};
	size_t count = 0, room = json_array_size(json_object_get(spec, lists[0])) +
				 json_array_size(json_object_get(spec, lists[1]));
	struct fit_request *requests = calloc(room + 1, sizeof(*requests));

	if (!requests)
		return -ENOMEM;
	for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
		const json_t *container;
		size_t i;

		json_array_foreach(json_object_get(spec, lists[list]), i, container)
		{
			const char *restart =
				json_string_value(json_object_get(container, "restartPolicy"));
			struct fit_request *request = &requests[count++];

			request->kind = list					? FIT_APP
					: restart && !strcmp(restart, "Always") ? FIT_SIDECAR
										: FIT_INIT;
			read_container(rules, container, request);
			demand->asks = demand->asks || request->devices;
		}
	}
	demand->pod.requests = requests;
	demand->pod.request_count = count;
	return 0;
}

static const char *or_else(const char *text, const char *other)
{
	return text ? text : other;
}

static int read_list(const json_t *pod, const char *key, const char **ret_list, struct err *err)
{
	*ret_list = demand_annotation(pod, key);
	if (*ret_list && strlen(*ret_list) > LIST_MOST_BYTES)
		return err_set(
			err, EINVAL, "annotation %s is longer than %d bytes", key, LIST_MOST_BYTES);
	return 0;
}

static int read_lists(const json_t *pod, struct fit_pod *fit, struct err *err)
{
	int r = read_list(pod, "nvidia.com/use-gputype", &fit->types, err);

	if (!r)
		r = read_list(pod, "nvidia.com/nouse-gputype", &fit->not_types, err);
	if (!r)
		r = read_list(pod, "nvidia.com/use-gpuuuid", &fit->uuids, err);
	if (!r)
		r = read_list(pod, "nvidia.com/nouse-gpuuuid", &fit->not_uuids, err);
	return r ? r : read_list(pod, "nvidia.com/vgpu-mode", &fit->modes, err);
}

static int read_wishes(
	const struct demand_rules *rules, const json_t *pod, struct demand *demand, struct err *err)
{
	const char *weights = demand_annotation(pod, "hami.io/device-scoring-weights");
	const char *node_policy = or_else(
		demand_annotation(pod, "hami.io/node-scheduler-policy"), rules->node_policy);
	struct fit_pod *fit = &demand->pod;
	int result;

	demand->is_spread = !strcmp(node_policy, "spread");
	fit->is_numa_bound = parse_is_on(demand_annotation(pod, "nvidia.com/numa-bind"));
	fit->policy = rank_policy_of(or_else(demand_annotation(pod, "hami.io/gpu-scheduler-policy"),
					     rules->device_policy),
		fit->is_numa_bound);
	fit->weights = rank_weights_default;
	result = read_lists(pod, fit, err);
	return result || !weights ? result : rank_weights_parse(weights, &fit->weights, err);
}

int demand_read_containers(
	const struct demand_rules *rules, const json_t *pod, struct demand *ret_demand)
{
	const json_t *metadata = json_object_get(pod, "metadata");

	*ret_demand = (struct demand){
		.namespace = or_else(json_string_value(json_object_get(metadata, "namespace")), ""),
		.name = or_else(json_string_value(json_object_get(metadata, "name")), ""),
		.uid = or_else(json_string_value(json_object_get(metadata, "uid")), ""),
	};
	return read_containers(rules, json_object_get(pod, "spec"), ret_demand);
}

int demand_read(const struct demand_rules *rules, const json_t *pod, struct demand *ret_demand,
	struct err *err)
{
	int result = demand_read_containers(rules, pod, ret_demand);

	if (result)
		return err_set(err, -result, "no memory");
	if (!ret_demand->asks)
		return 0;
	result = read_wishes(rules, pod, ret_demand, err);
	if (result)
		demand_deinit(ret_demand);
	return result;
}

int32_t demand_priority(const json_t *pod)
{
	json_int_t value =
		json_integer_value(json_object_get(json_object_get(pod, "spec"), "priority"));

	return value < INT32_MIN || value > INT32_MAX ? 0 : (int32_t)value;
}

void demand_deinit(struct demand *demand)
{
	free((void *)demand->pod.requests);
	*demand = (struct demand){0};
}
