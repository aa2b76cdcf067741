/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a namespace's quota leaves what a pod asks for its running slices. */
#include "scheduler/enlarge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kube/wish.h"

static void read_containers(const struct demand_rules *rules, const json_t *spec, const char *key,
	bool is_init, const char **names, struct assignment_need *needs, size_t *count)
{
	const json_t *container;
	size_t i;

	json_array_foreach(json_object_get(spec, key), i, container)
	{
		const char *name = json_string_value(json_object_get(container, "name"));
		int64_t devices;

		if (!demand_amount(container, rules->count, &devices))
			devices = 0;
		names[*count] = name ? name : "";
		needs[(*count)++] = (struct assignment_need){devices > 0 ? devices : 0, is_init};
	}
}

static struct fit_room sum(const struct assignment *assignment)
{
	struct fit_room all = {0};

	for (size_t i = 0; i < assignment->count; i++)
		for (size_t k = 0; k < assignment->slots[i].count; k++) {
			all.memory_mib += assignment->slots[i].devices[k].memory_mib;
			all.cores += assignment->slots[i].devices[k].cores_percent;
		}
	return all;
}

static int64_t more(int64_t has, int64_t had)
{
	return has > had ? has - had : 0;
}

/* What it wishes for beyond what it has. */
static int find_more(const struct wish_pod *pod, struct fit_room *ret_more, struct err *err)
{
	_cleanup_(wish_clear_slots) struct wish_slots before = WISH_SLOTS_NULL,
						      after = WISH_SLOTS_NULL;
	int r = wish_read_slots(pod, pod->allocated, &before, err);
	struct fit_room had, has;

	if (!r)
		r = wish_apply(pod, &after, err);
	if (r)
		return r;
	had = sum(&before.assignment);
	has = sum(&after.assignment);
	*ret_more =
		(struct fit_room){more(has.memory_mib, had.memory_mib), more(has.cores, had.cores)};
	return 0;
}

static bool has_needs(const struct wish_pod *pod)
{
	for (size_t i = 0; i < pod->count; i++)
		if (pod->needs[i].count)
			return true;
	return false;
}

/* A pod's object as a wish is read of it; names and needs have to be freed. */
static int read_pod(const struct demand_rules *rules, const json_t *pod, const char ***ret_names,
	struct assignment_need **ret_needs, struct wish_pod *ret_wish)
{
	const json_t *spec = json_object_get(pod, "spec");
	size_t most = json_array_size(json_object_get(spec, "initContainers")) +
		      json_array_size(json_object_get(spec, "containers"));
	const char **names = *ret_names = calloc(most + 1, sizeof(*names));
	struct assignment_need *needs = *ret_needs = calloc(most + 1, sizeof(*needs));

	*ret_wish = (struct wish_pod){.text = demand_annotation(pod, WISH_ANNOTATION),
		.allocated = demand_annotation(pod, ASSIGNMENT_ALLOCATED),
		.names = names,
		.needs = needs};
	if (!names || !needs)
		return -ENOMEM;
	read_containers(rules, spec, "initContainers", true, names, needs, &ret_wish->count);
	read_containers(rules, spec, "containers", false, names, needs, &ret_wish->count);
	return 0;
}

int enlarge_check(const struct demand_rules *rules, const json_t *pod, const struct fit_room *room,
	struct err *err)
{
	_cleanup_free_ const char **names = NULL;
	_cleanup_free_ struct assignment_need *needs = NULL;
	struct fit_room wished;
	struct wish_pod wish;
	int r;

	if (!demand_annotation(pod, WISH_ANNOTATION))
		return 0;
	if (read_pod(rules, pod, &names, &needs, &wish))
		return err_set(err, ENOMEM, "no memory");
	/* what it will have is not known, so nobody could say whether that is left of the quota */
	if (!wish.allocated)
		return has_needs(&wish) ? err_set(err, EINVAL, "the pod has no slices yet") : 0;
	r = find_more(&wish, &wished, err);
	if (r)
		return r;
	/* what becomes no more may, also where the namespace has too much */
	if ((wished.memory_mib && wished.memory_mib > room->memory_mib) ||
		(wished.cores && wished.cores > room->cores))
		return err_set(err, EINVAL, "exceeding resource quota");
	return 0;
}

int enlarge_wished(const struct demand_rules *rules, const json_t *pod, struct fit_room *ret_wished)
{
	_cleanup_free_ const char **names = NULL;
	_cleanup_free_ struct assignment_need *needs = NULL;
	struct wish_pod wish;
	struct err ignored;
	int r;

	*ret_wished = (struct fit_room){0};
	if (!demand_annotation(pod, WISH_ANNOTATION))
		return 0;
	r = read_pod(rules, pod, &names, &needs, &wish);
	if (!r && wish.allocated)
		r = find_more(&wish, ret_wished, &ignored);
	return r == -ENOMEM ? r : 0;
}
