/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine, as its NVML tells them. */
#include "gpu/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "policy/device_name.h"

static nvmlReturn_t read_one(
	const struct nvml_driver *nvml, unsigned index, struct inventory_device *ret_device)
{
	struct inventory_device d = {.index = index, .minor = index};
	nvmlMemory_t memory = {0};
	unsigned mig, pending, minor;
	nvmlDevice_t handle;
	nvmlReturn_t r = nvml->nvmlDeviceGetHandleByIndex_v2(index, &handle);

	if (r == NVML_SUCCESS)
		r = nvml->nvmlDeviceGetUUID(handle, d.uuid, sizeof(d.uuid));
	if (r == NVML_SUCCESS)
		r = nvml->nvmlDeviceGetName(handle, d.name, sizeof(d.name));
	if (r == NVML_SUCCESS && nvml->nvmlDeviceGetMinorNumber &&
		nvml->nvmlDeviceGetMinorNumber(handle, &minor) == NVML_SUCCESS)
		d.minor = minor;
	/* A card in MIG mode may not tell its memory; it is only shown. */
	if (r == NVML_SUCCESS && nvml->nvmlDeviceGetMemoryInfo(handle, &memory) == NVML_SUCCESS)
		d.total_bytes = memory.total;
	if (r == NVML_SUCCESS && nvml->nvmlDeviceGetMigMode &&
		nvml->nvmlDeviceGetMigMode(handle, &mig, &pending) == NVML_SUCCESS)
		d.is_mig = mig == NVML_DEVICE_MIG_ENABLE;
	*ret_device = d;
	return r;
}

int inventory_read(const struct nvml_driver *nvml, struct inventory *ret_inventory, struct err *err)
{
	unsigned count;
	nvmlReturn_t r = nvml->nvmlDeviceGetCount_v2(&count);

	ret_inventory->count = 0;
	for (unsigned i = 0; r == NVML_SUCCESS && i < count && i < INVENTORY_MAX; i++) {
		r = read_one(nvml, i, &ret_inventory->device[ret_inventory->count]);
		/* One broken card, or one that is not ours to see, hides no other. */
		if (r == NVML_SUCCESS)
			ret_inventory->count++;
		else if (r == NVML_ERROR_GPU_IS_LOST || r == NVML_ERROR_NO_PERMISSION)
			r = NVML_SUCCESS;
	}
	if (r == NVML_SUCCESS)
		return 0;
	return err_set(err, EIO, "NVML does not tell the devices: %s", nvml->nvmlErrorString(r));
}

const struct inventory_device *inventory_lookup(const struct inventory *inventory, const char *uuid)
{
	for (unsigned i = 0; i < inventory->count; i++)
		if (device_name_is_same(inventory->device[i].uuid, uuid))
			return &inventory->device[i];
	return NULL;
}

static int compare_indices(const void *a, const void *b)
{
	const struct inventory_device *left = a, *right = b;

	return (left->index > right->index) - (left->index < right->index);
}

void inventory_keep(struct inventory *inventory, const struct inventory *known)
{
	for (unsigned i = 0; i < known->count && inventory->count < INVENTORY_MAX; i++)
		if (!inventory_lookup(inventory, known->device[i].uuid))
			inventory->device[inventory->count++] = known->device[i];
	qsort(inventory->device, inventory->count, sizeof(*inventory->device), compare_indices);
}

/* "0 GPU-…, 1 GPU-…" as far as it fits. */
static void describe(const struct inventory *inventory, char *to, size_t size)
{
	size_t used = 0;

	to[0] = '\0';
	for (unsigned i = 0; i < inventory->count && used < size; i++)
		used += (size_t)snprintf(to + used, size - used, "%s%u %s", i ? ", " : "",
			inventory->device[i].index, inventory->device[i].uuid);
	if (inventory->count == 0)
		snprintf(to, size, "no device");
}

int inventory_find(const struct inventory *inventory, const char *text,
	const struct inventory_device **ret_device, struct err *err)
{
	const struct inventory_device *found = NULL;
	char there[300];
	uint64_t index;
	unsigned matches = 0;
	bool is_index = parse_u64(text, INVENTORY_MAX, &index) == 0;

	for (unsigned i = 0; i < inventory->count && *text; i++) {
		const struct inventory_device *d = &inventory->device[i];

		if (is_index ? d->index != index : strncmp(d->uuid, text, strlen(text)) != 0)
			continue;
		found = d;
		matches++;
	}
	if (matches == 1) {
		*ret_device = found;
		return 0;
	}
	describe(inventory, there, sizeof(there));
	return err_set(err, ENODEV, "device '%.80s' is %s; this machine has %s", text,
		matches ? "the beginning of several UUIDs" : "not here", there);
}

const char *inventory_short_name(const struct inventory_device *device)
{
	static const char maker[] = "NVIDIA ";

	return strncmp(device->name, maker, sizeof(maker) - 1) ? device->name
							       : device->name + sizeof(maker) - 1;
}
