/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod's slices can be as large as it asks for. */
#include "plugin/capacity.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

struct sum {
	int64_t memory_mib, cores;
};

static void add_slot(const struct assignment_slot *slot, const char *uuid, struct sum *sum)
{
	for (size_t i = 0; i < slot->count; i++)
		if (!strcmp(slot->devices[i].uuid, uuid)) {
			sum->memory_mib += slot->devices[i].memory_mib;
			sum->cores += slot->devices[i].cores_percent;
		}
}

/* What the pod takes of the device at the most: its containers together, or one init container alone. */
static struct sum taken(const struct pod *pod, const struct wish_slots *slots, const char *uuid)
{
	struct sum all = {0}, most = {0};

	for (size_t i = 0; i < slots->assignment.count; i++) {
		const struct assignment_slot *slot = &slots->assignment.slots[i];
		struct sum one = {0};

		if (!slot->count)
			continue;
		if (!pod->needs[slots->containers[i]].is_init) {
			add_slot(slot, uuid, &all);
			continue;
		}
		add_slot(slot, uuid, &one);
		most.memory_mib =
			one.memory_mib > most.memory_mib ? one.memory_mib : most.memory_mib;
		most.cores = one.cores > most.cores ? one.cores : most.cores;
	}
	return (struct sum){all.memory_mib > most.memory_mib ? all.memory_mib : most.memory_mib,
		all.cores > most.cores ? all.cores : most.cores};
}

/* As its annotation has it. */
static struct sum taken_now(const struct pod *pod, const char *uuid)
{
	_cleanup_(wish_clear_slots) struct wish_slots slots = WISH_SLOTS_NULL;
	const struct wish_pod of = {.needs = pod->needs, .count = pod->need_count};
	struct err err = ERR_NULL;

	if (!pod->allocated || wish_read_slots(&of, pod->allocated, &slots, &err))
		return (struct sum){0};
	return taken(pod, &slots, uuid);
}

/* Only what grows is held against what is there: a node that has too much already may become smaller. */
static int check_device(const struct grant_node *node, const struct pods *pods,
	const struct pod *pod, const struct wish_slots *wanted, const char *uuid, struct err *err)
{
	const struct inventory_device *device = inventory_lookup(node->inventory, uuid);
	struct sum before = taken_now(pod, uuid), now = taken(pod, wanted, uuid), sum = now;
	int64_t memory_mib, cores;

	if (!device)
		return err_set(err, EINVAL, "this node has no device %.63s", uuid);
	memory_mib = (int64_t)config_memory_mib(node->config, device);
	cores = (int64_t)(100 * node->config->cores_scaling);
	for (const struct pod *other = pods_first(pods); other; other = other->next) {
		struct sum its = {0};

		if (other != pod && !other->is_over)
			its = taken_now(other, uuid);
		sum.memory_mib += its.memory_mib;
		sum.cores += its.cores;
	}
	if (now.memory_mib > before.memory_mib && sum.memory_mib > memory_mib)
		return err_set(err, EINVAL,
			"%lld MiB of device %.63s would be granted, and it has %lld",
			(long long)sum.memory_mib, uuid, (long long)memory_mib);
	if (now.cores > before.cores && sum.cores > cores)
		return err_set(err, EINVAL,
			"%lld percent of device %.63s would be granted, and it has %lld",
			(long long)sum.cores, uuid, (long long)cores);
	return 0;
}

static int check_limits(const struct grant_node *node, const struct pod *pod, size_t container,
	const struct assignment_slot *slot, struct err *err)
{
	for (unsigned i = 0; i < pod->container_count; i++) {
		const struct pod_container *its = &pod->containers[i];
		const struct grant_asked asked = {
			its->memory_mib, its->memory_percent, its->cores_percent};

		for (size_t k = 0; its->index == container && k < slot->count; k++) {
			int r = grant_check_resized(node, &asked, &slot->devices[k], err);

			if (r)
				return r;
		}
	}
	return 0;
}

int capacity_check(const struct grant_node *node, const struct pods *pods, const struct pod *pod,
	const struct wish_slots *wanted, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < wanted->assignment.count && !r; i++) {
		const struct assignment_slot *slot = &wanted->assignment.slots[i];

		if (slot->count)
			r = check_limits(node, pod, wanted->containers[i], slot, err);
		for (size_t k = 0; k < slot->count && !r; k++)
			r = check_device(node, pods, pod, wanted, slot->devices[k].uuid, err);
	}
	return r;
}
