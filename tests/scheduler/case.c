/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as books and rules. */
#include "tests/scheduler/case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/quantity.h"
#include "scheduler/reservation.h"

static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text ? text : "";
}

const char *case_text(const json_t *object, const char *key)
{
	return text_of(json_object_get(object, key));
}

bool case_has_flag(const json_t *config, const char *flag)
{
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(config, "flags"), i,
		value) if (!strcmp(text_of(value), flag)) return true;
	return false;
}

/* What follows the name of the flag, or other. */
static const char *flag_value(const json_t *config, const char *name, const char *other)
{
	size_t i, length = strlen(name);
	const json_t *value;

	json_array_foreach(json_object_get(config, "flags"), i,
		value) if (!strncmp(text_of(value), name, length)) other = text_of(value) + length;
	return other;
}

struct demand_rules case_rules(const json_t *config)
{
	const json_t *changed = json_object_get(config, "nvidia");
	struct demand_rules rules = {
		.count = "nvidia.com/gpu",
		.memory = "nvidia.com/gpumem",
		.percentage = "nvidia.com/gpumem-percentage",
		.cores = "nvidia.com/gpucores",
		.node_policy = flag_value(config, "--node-scheduler-policy=", "binpack"),
		.device_policy = flag_value(config, "--gpu-scheduler-policy=", "spread"),
	};

	rules.default_memory_mib = json_integer_value(json_object_get(changed, "defaultMemory"));
	rules.default_cores = json_integer_value(json_object_get(changed, "defaultCores"));
	rules.memory_factor = json_integer_value(json_object_get(changed, "memoryFactor"));
	return rules;
}

/* A pod that was on the node before; what is not understood takes nothing. */
static void add_holder(
	struct books *books, const struct demand_rules *rules, json_t *pod, size_t at)
{
	struct reservation *reservation;
	struct err err = ERR_NULL;
	char uid[32];

	snprintf(uid, sizeof(uid), "uid-%zu", at);
	json_object_set_new(json_object_get(pod, "metadata"), "uid", json_string(uid));
	if (reservation_read(rules, pod, &reservation, &err))
		return;
	if (books_set_pod(books, reservation_pod(reservation)))
		abort();
	reservation_free(reservation);
}

void case_add_nodes(struct books *books, const struct demand_rules *rules, const json_t *nodes)
{
	const json_t *node;
	json_t *pod;
	size_t i, k, at = 0;

	json_array_foreach(nodes, i, node)
	{
		const json_t *annotations = json_object_get(node, "annotations");
		struct registry_texts texts = {
			.devices =
				json_string_value(json_object_get(annotations, REGISTRY_DEVICES)),
			.scores = json_string_value(json_object_get(annotations, REGISTRY_SCORES)),
			.cordon = json_string_value(json_object_get(annotations, REGISTRY_CORDON)),
		};
		struct err err = ERR_NULL;
		int64_t slots;

		if (!quantity_of(json_object_get(node, "allocatable"), rules->count, &slots) ||
			!slots)
			texts.devices = NULL;
		if (books_set_node(books, case_text(node, "name"), &texts, &err) == -ENOMEM)
			abort();
		json_array_foreach(json_object_get(node, "pods"), k, pod)
			add_holder(books, rules, pod, at++);
	}
}

static int64_t limit_of(const json_t *hard, const char *resource, int64_t factor)
{
	char name[128];
	int64_t value;

	snprintf(name, sizeof(name), "limits.%s", resource);
	return quantity_of(hard, name, &value) ? value * (factor > 1 ? factor : 1) : INT64_MAX;
}

void case_add_quotas(struct books *books, const struct demand_rules *rules, const json_t *vector)
{
	const json_t *hard;
	size_t i;

	json_array_foreach(json_object_get(vector, "quota"), i, hard)
	{
		struct fit_room limit = {limit_of(hard, rules->memory, rules->memory_factor),
			limit_of(hard, rules->cores, 1)};
		char name[32];

		snprintf(name, sizeof(name), "quota-%zu", i);
		if (books_set_quota(books,
			    case_text(json_object_get(json_object_get(vector, "pod"), "metadata"),
				    "namespace"),
			    name, &limit))
			abort();
	}
}
