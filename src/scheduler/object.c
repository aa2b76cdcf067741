/* SPDX-License-Identifier: Apache-2.0 */
/* What objects of the API say that bears on the books. */
#include "scheduler/object.h"

#include <stdio.h>
#include <string.h>

#include "kube/quantity.h"

const char *object_text(const json_t *object, const char *key)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(object, "metadata"), key));

	return text ? text : "";
}

bool object_is_name(const char *text)
{
	size_t length = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") : 0;

	return length && !text[length] && length <= 253 && *text != '.' && *text != '-';
}

const char *object_node(const json_t *pod)
{
	const char *node =
		json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName"));

	return node ? node : "";
}

bool object_is_over(const json_t *pod)
{
	const char *phase =
		json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));

	return phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"));
}

struct registry_texts object_read_node(const struct demand_rules *rules, const json_t *node)
{
	int64_t slots;
	bool has_slots =
		quantity_of(json_object_get(json_object_get(node, "status"), "allocatable"),
			rules->count, &slots) &&
		slots > 0;

	return (struct registry_texts){
		.devices = has_slots ? demand_annotation(node, REGISTRY_DEVICES) : NULL,
		.scores = demand_annotation(node, REGISTRY_SCORES),
		.cordon = demand_annotation(node, REGISTRY_CORDON),
	};
}

bool object_read_quota(
	const struct demand_rules *rules, const json_t *quota, struct fit_room *ret_limit)
{
	const json_t *hard = json_object_get(json_object_get(quota, "spec"), "hard");
	int64_t value, factor = rules->memory_factor > 1 ? rules->memory_factor : 1;
	char name[300];

	*ret_limit = (struct fit_room){INT64_MAX, INT64_MAX};
	snprintf(name, sizeof(name), "limits.%.250s", rules->memory);
	if (quantity_of(hard, name, &value) &&
		__builtin_mul_overflow(value, factor, &ret_limit->memory_mib))
		ret_limit->memory_mib = INT64_MAX;
	snprintf(name, sizeof(name), "limits.%.250s", rules->cores);
	if (quantity_of(hard, name, &value))
		ret_limit->cores = value;
	return ret_limit->memory_mib != INT64_MAX || ret_limit->cores != INT64_MAX;
}
