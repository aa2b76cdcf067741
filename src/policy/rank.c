/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by their names, and scores. */
#include "policy/rank.h"

#include <errno.h>
#include <string.h>

#include "policy/names.h"

const struct rank_weights rank_weights_default = {1, 1, 1};

static void add_key(struct rank_policy *policy, enum rank_key key)
{
	for (size_t i = 0; i < policy->key_count; i++)
		if (policy->keys[i] == key)
			return;
	policy->keys[policy->key_count++] = key;
}

/* Of several words each adds a key, or a condition. */
static struct rank_policy policy_of_list(const char *list, bool is_numa_bound)
{
	struct rank_policy policy = {0};
	bool is_numa_said = false;
	struct name name;

	if (is_numa_bound)
		add_key(&policy, RANK_NUMA);
	while (name_next(&list, &name)) {
		is_numa_said |= name_is(&name, "numa");
		if (name_is(&name, "binpack"))
			add_key(&policy, RANK_BINPACK);
		else if (name_is(&name, "spread"))
			add_key(&policy, RANK_SPREAD);
		else if (name_is(&name, "numa"))
			add_key(&policy, RANK_NUMA);
		else if (name_is(&name, "mutex"))
			policy.is_mutex = true;
		else if (name_is(&name, "topology-aware"))
			policy.is_topology = true;
	}
	if (policy.key_count == is_numa_bound && !is_numa_said)
		add_key(&policy, RANK_SPREAD);
	return policy;
}

struct rank_policy rank_policy_of(const char *name, bool is_numa_bound)
{
	bool is_binpack = !strcmp(name, "binpack"), is_mutex = !strcmp(name, "mutex");
	enum rank_key key = is_binpack ? RANK_BINPACK : is_mutex ? RANK_UNUSED : RANK_SPREAD;
	enum rank_key numa = is_numa_bound && is_binpack ? RANK_NUMA_LOWER : RANK_NUMA;
	struct rank_policy policy = {.key_count = 2,
		.is_mutex = is_mutex,
		.is_topology = !strcmp(name, "topology-aware")};

	if (strchr(name, ',') || !strcmp(name, "numa"))
		return policy_of_list(name, is_numa_bound);
	policy.keys[0] = is_numa_bound ? numa : key;
	policy.keys[1] = is_numa_bound ? key : numa;
	return policy;
}

/* "key = N", with or without blanks. */
static bool read_weight(const struct name *name, const char *key, uint32_t *ret_weight)
{
	const char *text = name->text, *end = text + name->length;
	size_t length = strlen(key);
	uint64_t value = 0;

	if (name->length <= length || strncmp(text, key, length) != 0)
		return false;
	text += length;
	text += strspn(text, " \t");
	if (*text++ != '=')
		return false;
	text += strspn(text, " \t");
	if (text >= end)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > UINT32_MAX)
			return false;
	}
	*ret_weight = (uint32_t)value;
	return true;
}

int rank_weights_parse(const char *text, struct rank_weights *ret_weights, struct err *err)
{
	static const char *const keys[] = {"slot", "core", "memory"};
	uint32_t weights[ARRAY_SIZE(keys)];
	bool was_said[ARRAY_SIZE(keys)] = {0};
	const char *rest = text;
	struct name name;

	while (name_next(&rest, &name)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(keys) && !read_weight(&name, keys[i], &weights[i]))
			i++;
		if (i == ARRAY_SIZE(keys) || was_said[i])
			return err_set(err, EINVAL,
				"weights '%s': '%.*s' is not slot=N, core=N or memory=N, each said "
				"once",
				text, (int)name.length, name.text);
		was_said[i] = true;
	}
	if (!was_said[0] || !was_said[1] || !was_said[2] || !(weights[0] | weights[1] | weights[2]))
		return err_set(err, EINVAL,
			"weights '%s': slot, core and memory are each said, and one is above 0",
			text);
	*ret_weights = (struct rank_weights){weights[0], weights[1], weights[2]};
	return 0;
}

double rank_score(const struct rank_amount *used, const struct rank_amount *all,
	const struct rank_weights *weights)
{
	if (!all->slots || !all->cores || !all->memory_mib)
		return 0;
	return 10 * (weights->slot * (double)used->slots / (double)all->slots +
			    weights->core * (double)used->cores / (double)all->cores +
			    weights->memory * (double)used->memory_mib / (double)all->memory_mib);
}
