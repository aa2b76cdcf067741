/* SPDX-License-Identifier: Apache-2.0 */
/* What the books keep of a pod. */
#include "scheduler/booked_pod.h"

#include <stdlib.h>
#include <string.h>

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
	char *begin = *at;

	if (!text)
		return NULL;
	*at = stpcpy(begin, text) + 1;
	return begin;
}

static size_t all_texts_bytes(const struct books_pod *from)
{
	size_t bytes = text_bytes(from->uid) + text_bytes(from->name ? from->name : "");

	for (size_t i = 0; i < from->charge_count; i++)
		bytes += text_bytes(from->charges[i].uuid);
	for (size_t i = 0; i < from->instance_count; i++)
		bytes += text_bytes(from->instances[i].uuid) +
			 text_bytes(from->instances[i].profile) +
			 text_bytes(from->instances[i].given);
	return bytes;
}

/* The charges, the instances, and the texts of all. */
struct booked_pod *booked_pod_new(const struct books_pod *from)
{
	size_t charges_bytes = from->charge_count * sizeof(*from->charges);
	size_t instances_bytes = from->instance_count * sizeof(*from->instances);
	struct booked_pod *pod =
		malloc(sizeof(*pod) + charges_bytes + instances_bytes + all_texts_bytes(from));
	struct books_instance *instances;
	char *at;

	if (!pod)
		return NULL;
	instances = (struct books_instance *)&pod->charges[from->charge_count];
	at = (char *)&instances[from->instance_count];
	*pod = (struct booked_pod){.uid = put(&at, from->uid),
		.name = put(&at, from->name ? from->name : ""),
		.instances = instances,
		.standing = from->standing,
		.wished = from->wished,
		.charge_count = (uint32_t)from->charge_count,
		.instance_count = (uint32_t)from->instance_count,
		.has_doubtful_instances = from->has_doubtful_instances};
	for (size_t i = 0; i < from->charge_count; i++)
		pod->charges[i] = (struct books_charge){
			put(&at, from->charges[i].uuid), from->charges[i].amount};
	for (size_t i = 0; i < from->instance_count; i++) {
		instances[i] = from->instances[i];
		instances[i].uuid = put(&at, from->instances[i].uuid);
		instances[i].profile = put(&at, from->instances[i].profile);
		instances[i].given = put(&at, from->instances[i].given);
	}
	return pod;
}

static void distrust_all_mig(struct registry *registry)
{
	for (size_t i = 0; i < registry->node.device_count; i++)
		if (registry->devices[i].is_mig)
			registry->devices[i].is_healthy = false;
}

static bool has_instance(const struct booked_pod *pod, const char *uuid)
{
	for (size_t i = 0; i < pod->instance_count; i++)
		if (!strcmp(pod->instances[i].uuid, uuid))
			return true;
	return false;
}

void booked_pod_charge(const struct booked_pod *pod, struct registry *registry)
{
	for (size_t i = 0; i < pod->charge_count; i++) {
		struct fit_device *device = registry_find(registry, pod->charges[i].uuid);

		if (!device)
			continue;
		device->used.slots += pod->charges[i].amount.slots;
		device->used.memory_mib += pod->charges[i].amount.memory_mib;
		device->used.cores += pod->charges[i].amount.cores;
		if (device->is_mig && !has_instance(pod, device->uuid))
			device->is_healthy = false;
	}
	for (size_t i = 0; i < pod->instance_count; i++) {
		struct fit_device *device = registry_find(registry, pod->instances[i].uuid);

		if (!device)
			distrust_all_mig(registry);
		else if (!device->is_mig)
			device->is_healthy = false;
		else
			device->mig_taken |= mig_slices(pod->instances[i].place);
	}
	if (pod->has_doubtful_instances)
		distrust_all_mig(registry);
}
