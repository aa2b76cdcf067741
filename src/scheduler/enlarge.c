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

static int compare(const struct wish_pod *pod, const struct fit_room *room, struct err *err)
{
	_cleanup_(wish_clear_slots) struct wish_slots before = WISH_SLOTS_NULL,
						      after = WISH_SLOTS_NULL;
	struct fit_room had, has;
	int r = wish_read_slots(pod, pod->allocated, &before, err);

	if (!r)
		r = wish_apply(pod, &after, err);
	if (r)
		return r;
	had = sum(&before.assignment);
	has = sum(&after.assignment);
	if ((has.memory_mib > had.memory_mib &&
		    has.memory_mib - had.memory_mib > room->memory_mib) ||
		(has.cores > had.cores && has.cores - had.cores > room->cores))
		return err_set(err, EINVAL, "exceeding resource quota");
	return 0;
}

static bool has_needs(const struct wish_pod *pod)
{
	for (size_t i = 0; i < pod->count; i++)
		if (pod->needs[i].count)
			return true;
	return false;
}

int enlarge_check(const struct demand_rules *rules, const json_t *pod, const struct fit_room *room,
	struct err *err)
{
	const json_t *spec = json_object_get(pod, "spec");
	size_t most = json_array_size(json_object_get(spec, "initContainers")) +
		      json_array_size(json_object_get(spec, "containers"));
	_cleanup_free_ const char **names = calloc(most + 1, sizeof(*names));
	_cleanup_free_ struct assignment_need *needs = calloc(most + 1, sizeof(*needs));
	struct wish_pod wish = {.text = demand_annotation(pod, WISH_ANNOTATION),
		.allocated = demand_annotation(pod, ASSIGNMENT_ALLOCATED),
		.names = names,
		.needs = needs};

	if (!wish.text)
		return 0;
	if (!names || !needs)
		return err_set(err, ENOMEM, "no memory");
	read_containers(rules, spec, "initContainers", true, names, needs, &wish.count);
	read_containers(rules, spec, "containers", false, names, needs, &wish.count);
	/* what it will have is not known, so nobody could say whether that is left of the quota */
	if (!wish.allocated)
		return has_needs(&wish) ? err_set(err, EINVAL, "the pod has no slices yet") : 0;
	return compare(&wish, room, err);
}
