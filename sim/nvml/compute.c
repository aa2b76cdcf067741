/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: compute instances, into which the processors of a GPU instance are cut. */
#include "sim/nvml/entry.h"

/* By NVML's kind, which is also the id of the profile; 0: there is no such kind on a card. */
static unsigned int slices_of(unsigned int kind)
{
	static const unsigned int slices[] = {
		[NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE] = 1,
		[NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE] = 2,
		[NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE] = 3,
		[NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE] = 4,
		[NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE] = 7,
	};

	return kind < sizeof(slices) / sizeof(slices[0]) ? slices[kind] : 0;
}

static unsigned int kind_of(unsigned int slices)
{
	unsigned int kind = 0;

	while (slices_of(kind) != slices)
		kind++;
	return kind;
}

struct of_instance {
	int index, place;
	struct mig_instance instance;
	const struct mig_profile *profile;
};

static bool find_instance(nvmlGpuInstance_t handle, struct of_instance *ret_of)
{
	struct mig_card card;

	if (!part_find_instance(handle, &ret_of->index, &ret_of->place))
		return false;
	mig_read(node_machine(), ret_of->index, &card);
	ret_of->instance = card.instance[ret_of->place];
	ret_of->profile = mig_profile_of_id(node_board(), ret_of->instance.profile_id);
	return ret_of->instance.is_used;
}

/* The instance, which can have parts of this kind. */
static nvmlReturn_t check(nvmlGpuInstance_t handle, unsigned int kind, const void *ret_value,
	struct of_instance *ret_of)
{
	if (!ret_value || !find_instance(handle, ret_of) ||
		kind >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!slices_of(kind) || slices_of(kind) > ret_of->profile->slices)
		return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlGpuInstanceGetComputeInstanceProfileInfo,
	(nvmlGpuInstance_t instance, unsigned int kind, unsigned int engines,
		nvmlComputeInstanceProfileInfo_t *info),
	(instance, kind, engines, info))
{
	const struct mig_instance empty = {0};
	struct mig_instance fresh = empty;
	struct of_instance of;
	nvmlReturn_t result = check(instance, kind, info, &of);

	if (result != NVML_SUCCESS)
		return result;
	if (engines != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		return NVML_ERROR_NOT_SUPPORTED;
	fresh.profile_id = of.instance.profile_id;
	*info = (nvmlComputeInstanceProfileInfo_t){
		.id = kind,
		.sliceCount = slices_of(kind),
		.instanceCount = mig_compute_room(node_board(), &fresh, slices_of(kind)),
		.multiprocessorCount = mig_sm_count(of.profile, slices_of(kind)),
		.sharedCopyEngineCount = of.profile->copy_engines,
		.sharedDecoderCount = of.profile->decoders,
		.sharedJpegCount = of.profile->media_engines,
		.sharedOfaCount = of.profile->media_engines,
	};
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
	(nvmlGpuInstance_t instance, unsigned int id, unsigned int *count), (instance, id, count))
{
	struct of_instance of;
	nvmlReturn_t result = check(instance, id, count, &of);

	if (result == NVML_SUCCESS)
		*count = mig_compute_room(node_board(), &of.instance, slices_of(id));
	return result;
}

ENTRY_BODY(nvmlGpuInstanceGetComputeInstancePossiblePlacements,
	(nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstancePlacement_t *placements,
		unsigned int *count),
	(instance, id, placements, count))
{
	struct of_instance of;
	nvmlReturn_t result = check(instance, id, count, &of);
	unsigned int there, slices = slices_of(id);

	if (result != NVML_SUCCESS)
		return result;
	there = of.profile->slices / slices;
	if (placements && *count < there)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; placements && i < there; i++)
		placements[i] = (nvmlComputeInstancePlacement_t){i * slices, slices};
	*count = there;
	return NVML_SUCCESS;
}

static nvmlReturn_t create(
	nvmlGpuInstance_t instance, unsigned int id, int start, nvmlComputeInstance_t *ret_compute)
{
	struct of_instance of;
	nvmlReturn_t result = check(instance, id, ret_compute, &of);
	unsigned int made;

	if (result != NVML_SUCCESS)
		return result;
	if (mig_create_compute(
		    node_machine(), of.index, of.instance.id, slices_of(id), start, &made))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	*ret_compute = part_compute_handle(of.index, of.place, made);
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlGpuInstanceCreateComputeInstance,
	(nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *compute),
	(instance, id, compute))
{
	return create(instance, id, -1, compute);
}

ENTRY_BODY(nvmlGpuInstanceCreateComputeInstanceWithPlacement,
	(nvmlGpuInstance_t instance, unsigned int id,
		const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *compute),
	(instance, id, placement, compute))
{
	if (!placement || placement->size != slices_of(id) ||
		placement->start >= MIG_PROCESSOR_SLICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	return create(instance, id, (int)placement->start, compute);
}

ENTRY_BODY(nvmlGpuInstanceGetComputeInstances,
	(nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *computes,
		unsigned int *count),
	(instance, id, computes, count))
{
	struct of_instance of;
	nvmlReturn_t result = check(instance, id, count, &of);

	if (result != NVML_SUCCESS)
		return result;
	if (!computes)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned int i = 0; i < MIG_COMPUTES_MAX; i++)
		if (of.instance.compute[i].is_used &&
			of.instance.compute[i].slices == slices_of(id))
			computes[(*count)++] = part_compute_handle(of.index, of.place, i);
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlGpuInstanceGetComputeInstanceById,
	(nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *compute),
	(instance, id, compute))
{
	struct of_instance of;

	if (!compute || !find_instance(instance, &of))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (id >= MIG_COMPUTES_MAX || !of.instance.compute[id].is_used)
		return NVML_ERROR_NOT_FOUND;
	*compute = part_compute_handle(of.index, of.place, id);
	return NVML_SUCCESS;
}

static bool find_compute(
	nvmlComputeInstance_t handle, struct of_instance *ret_of, unsigned int *ret_compute)
{
	int index, place;

	return part_find_compute(handle, &index, &place, ret_compute) &&
	       find_instance(part_instance_handle(index, place), ret_of) &&
	       ret_of->instance.compute[*ret_compute].is_used;
}

ENTRY_BODY(nvmlComputeInstanceDestroy, (nvmlComputeInstance_t handle), (handle))
{
	unsigned int compute;
	struct of_instance of;

	if (!find_compute(handle, &of, &compute))
		return NVML_ERROR_INVALID_ARGUMENT;
	return mig_destroy_compute(node_machine(), of.index, of.instance.id, compute)
		       ? NVML_ERROR_IN_USE
		       : NVML_SUCCESS;
}

ENTRY_BODY(nvmlComputeInstanceGetInfo_v2,
	(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info), (handle, info))
{
	unsigned int compute;
	struct of_instance of;

	if (!info || !find_compute(handle, &of, &compute))
		return NVML_ERROR_INVALID_ARGUMENT;
	*info = (nvmlComputeInstanceInfo_t){.device = node_handle(of.index),
		.gpuInstance = part_instance_handle(of.index, of.place),
		.id = compute,
		.profileId = kind_of(of.instance.compute[compute].slices),
		.placement = {
			of.instance.compute[compute].start, of.instance.compute[compute].slices}};
	return NVML_SUCCESS;
}
ENTRY_ALIAS(nvmlComputeInstanceGetInfo, nvmlComputeInstanceGetInfo_v2,
	(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info), (handle, info))
