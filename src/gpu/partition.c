/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that are cut into instances, through NVML. */
#include "gpu/partition.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The functions without which none of it works; the driver has all or none. */
#define NEEDED(X)                                        \
	X(nvmlDeviceSetMigMode)                          \
	X(nvmlDeviceGetGpuInstanceProfileInfoV)          \
	X(nvmlDeviceGetGpuInstancePossiblePlacements_v2) \
	X(nvmlDeviceCreateGpuInstanceWithPlacement)      \
	X(nvmlDeviceGetGpuInstances)                     \
	X(nvmlDeviceGetGpuInstanceById)                  \
	X(nvmlGpuInstanceGetInfo)                        \
	X(nvmlGpuInstanceDestroy)                        \
	X(nvmlGpuInstanceGetComputeInstanceProfileInfo)  \
	X(nvmlGpuInstanceCreateComputeInstance)          \
	X(nvmlGpuInstanceGetComputeInstances)            \
	X(nvmlComputeInstanceGetInfo_v2)                 \
	X(nvmlComputeInstanceDestroy)                    \
	X(nvmlDeviceGetMigDeviceHandleByIndex)           \
	X(nvmlDeviceGetGpuInstanceId)                    \
	X(nvmlDeviceGetComputeInstanceId)

static bool has_all(const struct nvml_node *node)
{
#define X(symbol)          \
	if (!node->symbol) \
		return false;
	NEEDED(X)
#undef X
	return true;
}

static const char *words(const struct partition_gpu *gpu, nvmlReturn_t result)
{
	return gpu->nvml->nvmlErrorString(result);
}

/* By NVML's kind of a GPU instance; false: the GPU has none of it. */
static bool read_profile(
	const struct partition_gpu *gpu, unsigned kind, struct partition_profile *ret_profile)
{
	nvmlGpuInstanceProfileInfo_v2_t info = {.version = nvmlGpuInstanceProfileInfo_v2};
	nvmlGpuInstancePlacement_t places[PARTITION_PLACES_MAX];
	unsigned count = PARTITION_PLACES_MAX;

	if (gpu->node->nvmlDeviceGetGpuInstanceProfileInfoV(gpu->device, kind, &info) !=
			NVML_SUCCESS ||
		gpu->node->nvmlDeviceGetGpuInstancePossiblePlacements_v2(
			gpu->device, info.id, places, &count) != NVML_SUCCESS ||
		!count || count > PARTITION_PLACES_MAX)
		return false;
	*ret_profile = (struct partition_profile){.id = info.id,
		.kind = kind,
		.slices = info.sliceCount,
		.most = info.instanceCount,
		.multiprocessors = info.multiprocessorCount,
		.memory_mib = info.memorySizeMB,
		.place_count = count,
		.size = places[0].size};
	for (unsigned i = 0; i < count; i++)
		ret_profile->start[i] = places[i].start;
	snprintf(ret_profile->name, PARTITION_NAME_BYTES, "%.*s", PARTITION_NAME_BYTES - 1,
		strncmp(info.name, "MIG ", 4) ? info.name : info.name + 4);
	return true;
}

int partition_find_gpu(const struct nvml_driver *nvml, const struct nvml_node *node,
	const char *uuid, struct partition_gpu *ret_gpu, struct err *err)
{
	*ret_gpu = (struct partition_gpu){.nvml = nvml, .node = node};
	if (!has_all(node))
		return err_set(err, ENODEV, "this driver cannot cut GPUs into instances");
	if (nvml->nvmlDeviceGetHandleByUUID(uuid, &ret_gpu->device) != NVML_SUCCESS)
		return err_set(err, ENODEV, "there is no GPU %.80s", uuid);
	for (unsigned kind = 0; kind < NVML_GPU_INSTANCE_PROFILE_COUNT; kind++)
		if (read_profile(ret_gpu, kind, &ret_gpu->profiles.at[ret_gpu->profiles.count]))
			ret_gpu->profiles.count++;
	return ret_gpu->profiles.count ? 0 : err_set(err, ENODEV, "GPU %.80s has no MIG", uuid);
}

int partition_enable(const struct partition_gpu *gpu, struct err *err)
{
	nvmlReturn_t activation = NVML_SUCCESS, result;
	unsigned current, pending;

	result = gpu->nvml->nvmlDeviceGetMigMode(gpu->device, &current, &pending);
	if (result == NVML_SUCCESS && current == NVML_DEVICE_MIG_ENABLE)
		return 0;
	if (result == NVML_SUCCESS)
		result = gpu->node->nvmlDeviceSetMigMode(
			gpu->device, NVML_DEVICE_MIG_ENABLE, &activation);
	if (result == NVML_SUCCESS && activation == NVML_SUCCESS)
		result = gpu->nvml->nvmlDeviceGetMigMode(gpu->device, &current, &pending);
	if (result != NVML_SUCCESS)
		return err_set(err, EIO, "MIG mode cannot be enabled: %s", words(gpu, result));
	return current == NVML_DEVICE_MIG_ENABLE
		       ? 0
		       : err_set(err, EBUSY, "MIG mode is pending: %s", words(gpu, activation));
}

const struct partition_profile *partition_find_profile(
	const struct partition_gpu *gpu, const char *name, unsigned size)
{
	for (unsigned i = 0; i < gpu->profiles.count; i++)
		if (!strcmp(gpu->profiles.at[i].name, name) && gpu->profiles.at[i].size == size)
			return &gpu->profiles.at[i];
	return NULL;
}

/* The profile of compute instances that have all of an instance of so many slices. */
static bool find_whole(const struct partition_gpu *gpu, nvmlGpuInstance_t instance, unsigned slices,
	unsigned *ret_id)
{
	nvmlComputeInstanceProfileInfo_t info;

	for (unsigned kind = 0; kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; kind++)
		if (gpu->node->nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind,
			    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &info) == NVML_SUCCESS &&
			info.sliceCount == slices) {
			*ret_id = info.id;
			return true;
		}
	return false;
}

/* The device that programs know the part by. */
static void read_uuid(const struct partition_gpu *gpu, struct partition *partition)
{
	unsigned instance, compute;
	nvmlDevice_t device;

	for (unsigned i = 0; i < PARTITIONS_MAX * PARTITIONS_MAX; i++)
		if (gpu->node->nvmlDeviceGetMigDeviceHandleByIndex(gpu->device, i, &device) ==
				NVML_SUCCESS &&
			gpu->node->nvmlDeviceGetGpuInstanceId(device, &instance) == NVML_SUCCESS &&
			gpu->node->nvmlDeviceGetComputeInstanceId(device, &compute) ==
				NVML_SUCCESS &&
			instance == partition->instance && compute == partition->compute &&
			gpu->nvml->nvmlDeviceGetUUID(device, partition->uuid, UUID_TEXT_BYTES) ==
				NVML_SUCCESS)
			return;
	partition->uuid[0] = '\0';
}

/* All compute instances of an instance, of whatever profile. */
static unsigned list_computes(const struct partition_gpu *gpu, nvmlGpuInstance_t instance,
	nvmlComputeInstance_t ret_computes[PARTITIONS_MAX])
{
	nvmlComputeInstance_t some[PARTITIONS_MAX];
	nvmlComputeInstanceProfileInfo_t info;
	unsigned count, all = 0;

	for (unsigned kind = 0; kind < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; kind++) {
		if (gpu->node->nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind,
			    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &info) != NVML_SUCCESS)
			continue;
		count = PARTITIONS_MAX;
		if (gpu->node->nvmlGpuInstanceGetComputeInstances(
			    instance, info.id, some, &count) != NVML_SUCCESS)
			continue;
		for (unsigned i = 0; i < count && all < PARTITIONS_MAX; i++)
			ret_computes[all++] = some[i];
	}
	return all;
}

static void read_computes(const struct partition_gpu *gpu, nvmlGpuInstance_t instance,
	unsigned slices, struct partition *partition)
{
	nvmlComputeInstance_t computes[PARTITIONS_MAX];
	unsigned whole, count = list_computes(gpu, instance, computes);
	nvmlComputeInstanceInfo_t info;

	if (count == 1 && find_whole(gpu, instance, slices, &whole) &&
		gpu->node->nvmlComputeInstanceGetInfo_v2(computes[0], &info) == NVML_SUCCESS &&
		info.profileId == whole) {
		partition->compute = info.id;
		partition->is_whole = true;
		read_uuid(gpu, partition);
	}
	partition->is_cut = count && !partition->is_whole;
}

static int list_of_profile(const struct partition_gpu *gpu, const struct partition_profile *profile,
	struct partitions *list, struct err *err)
{
	nvmlGpuInstance_t instances[PARTITIONS_MAX];
	unsigned count = PARTITIONS_MAX;
	nvmlGpuInstanceInfo_t info;
	nvmlReturn_t result =
		gpu->node->nvmlDeviceGetGpuInstances(gpu->device, profile->id, instances, &count);

	if (result != NVML_SUCCESS)
		return err_set(
			err, EIO, "NVML does not tell the instances: %s", words(gpu, result));
	for (unsigned i = 0; i < count && list->count < PARTITIONS_MAX; i++) {
		struct partition *partition = &list->at[list->count];

		/* One that goes meanwhile is none. */
		if (gpu->node->nvmlGpuInstanceGetInfo(instances[i], &info) != NVML_SUCCESS)
			continue;
		*partition = (struct partition){.instance = info.id,
			.profile_id = info.profileId,
			.start = info.placement.start,
			.size = info.placement.size};
		read_computes(gpu, instances[i], profile->slices, partition);
		list->count++;
	}
	return 0;
}

int partition_list(const struct partition_gpu *gpu, struct partitions *ret_list, struct err *err)
{
	int result = 0;

	ret_list->count = 0;
	for (unsigned i = 0; i < gpu->profiles.count && !result; i++)
		result = list_of_profile(gpu, &gpu->profiles.at[i], ret_list, err);
	return result;
}

int partition_make(const struct partition_gpu *gpu, const struct partition_profile *profile,
	unsigned start, unsigned *ret_instance, struct err *err)
{
	const nvmlGpuInstancePlacement_t placement = {start, profile->size};
	nvmlGpuInstance_t instance;
	nvmlGpuInstanceInfo_t info;
	nvmlReturn_t result = gpu->node->nvmlDeviceCreateGpuInstanceWithPlacement(
		gpu->device, profile->id, &placement, &instance);

	if (result == NVML_SUCCESS)
		result = gpu->node->nvmlGpuInstanceGetInfo(instance, &info);
	if (result != NVML_SUCCESS)
		return err_set(err, result == NVML_ERROR_INSUFFICIENT_RESOURCES ? ENOSPC : EIO,
			"instance %s at %u:%u cannot be made: %s", profile->name, start,
			profile->size, words(gpu, result));
	*ret_instance = info.id;
	return 0;
}

static unsigned slices_of(const struct partition_gpu *gpu, unsigned profile_id)
{
	for (unsigned i = 0; i < gpu->profiles.count; i++)
		if (gpu->profiles.at[i].id == profile_id)
			return gpu->profiles.at[i].slices;
	return 0;
}

int partition_fill(const struct partition_gpu *gpu, unsigned id, struct err *err)
{
	nvmlGpuInstance_t instance;
	nvmlComputeInstance_t made;
	nvmlGpuInstanceInfo_t info;
	unsigned whole = 0;
	nvmlReturn_t result = gpu->node->nvmlDeviceGetGpuInstanceById(gpu->device, id, &instance);

	if (result == NVML_SUCCESS)
		result = gpu->node->nvmlGpuInstanceGetInfo(instance, &info);
	if (result == NVML_SUCCESS &&
		!find_whole(gpu, instance, slices_of(gpu, info.profileId), &whole))
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		result = gpu->node->nvmlGpuInstanceCreateComputeInstance(instance, whole, &made);
	return result == NVML_SUCCESS ? 0
				      : err_set(err, EIO, "instance %u cannot be filled: %s", id,
						words(gpu, result));
}

int partition_remove(const struct partition_gpu *gpu, unsigned id, struct err *err)
{
	nvmlComputeInstance_t computes[PARTITIONS_MAX];
	nvmlGpuInstance_t instance;
	unsigned count;
	nvmlReturn_t result = gpu->node->nvmlDeviceGetGpuInstanceById(gpu->device, id, &instance);

	if (result == NVML_ERROR_NOT_FOUND)
		return 0;
	count = result == NVML_SUCCESS ? list_computes(gpu, instance, computes) : 0;
	for (unsigned i = 0; i < count && result == NVML_SUCCESS; i++)
		result = gpu->node->nvmlComputeInstanceDestroy(computes[i]);
	if (result == NVML_SUCCESS)
		result = gpu->node->nvmlGpuInstanceDestroy(instance);
	return result == NVML_SUCCESS
		       ? 0
		       : err_set(err, result == NVML_ERROR_IN_USE ? EBUSY : EIO,
				 "instance %u cannot be removed: %s", id, words(gpu, result));
}
