/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: what GPU instances a card can have, and those that it has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/nvml/entry.h"

static const struct mig_profile *find_profile(unsigned int id)
{
	return mig_profile_of_id(node_board(), id);
}

ENTRY_DEVICE(nvmlDeviceGetGpuInstanceProfileInfo,
	(unsigned int kind, nvmlGpuInstanceProfileInfo_t *info), (kind, info))
{
	const struct mig_profile *profile = mig_profile_of_kind(node_board(), kind);

	if (!info || kind >= NVML_GPU_INSTANCE_PROFILE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!profile)
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (nvmlGpuInstanceProfileInfo_t){
		.id = profile->id,
		.sliceCount = profile->slices,
		.instanceCount = mig_profile_most(profile),
		.multiprocessorCount = profile->sm_count,
		.copyEngineCount = profile->copy_engines,
		.decoderCount = profile->decoders,
		.jpegCount = profile->media_engines,
		.ofaCount = profile->media_engines,
		.memorySizeMB = profile->memory_mib,
	};
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetGpuInstanceProfileInfoV,
	(unsigned int kind, nvmlGpuInstanceProfileInfo_v2_t *info), (kind, info))
{
	nvmlGpuInstanceProfileInfo_t plain;
	nvmlReturn_t result;

	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (info->version != nvmlGpuInstanceProfileInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = nvmlDeviceGetGpuInstanceProfileInfo_body(index, kind, &plain);
	if (result != NVML_SUCCESS)
		return result;
	*info = (nvmlGpuInstanceProfileInfo_v2_t){
		.version = nvmlGpuInstanceProfileInfo_v2,
		.id = plain.id,
		.sliceCount = plain.sliceCount,
		.instanceCount = plain.instanceCount,
		.multiprocessorCount = plain.multiprocessorCount,
		.copyEngineCount = plain.copyEngineCount,
		.decoderCount = plain.decoderCount,
		.jpegCount = plain.jpegCount,
		.ofaCount = plain.ofaCount,
		.memorySizeMB = plain.memorySizeMB,
	};
	snprintf(info->name, sizeof(info->name), "MIG %s",
		mig_profile_of_kind(node_board(), kind)->name);
	return NVML_SUCCESS;
}

/* Whether MIG is enabled or not. */
ENTRY_DEVICE(nvmlDeviceGetGpuInstancePossiblePlacements_v2,
	(unsigned int id, nvmlGpuInstancePlacement_t *placements, unsigned int *count),
	(id, placements, count))
{
	const struct mig_profile *profile = find_profile(id);
	unsigned int there = 0;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!profile)
		return mig_profile_at(node_board(), 0) ? NVML_ERROR_INVALID_ARGUMENT
						       : NVML_ERROR_NOT_SUPPORTED;
	if (placements && *count < (unsigned int)__builtin_popcount(profile->starts))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int start = 0; start < MIG_MEMORY_SLICES; start++) {
		if (!(profile->starts >> start & 1))
			continue;
		if (placements)
			placements[there] =
				(nvmlGpuInstancePlacement_t){start, profile->memory_slices};
		there++;
	}
	*count = there;
	return NVML_SUCCESS;
}
ENTRY_DEVICE_ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements,
	nvmlDeviceGetGpuInstancePossiblePlacements_v2,
	(unsigned int id, nvmlGpuInstancePlacement_t *placements, unsigned int *count),
	(id, placements, count))

/* The profile and the card in MIG mode, which the rest needs. */
static nvmlReturn_t check_card(int index, unsigned int id, const void *ret_value,
	struct mig_card *ret_card, const struct mig_profile **ret_profile)
{
	if (!ret_value)
		return NVML_ERROR_INVALID_ARGUMENT;
	mig_read(node_machine(), index, ret_card);
	if (!ret_card->is_enabled)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_profile = find_profile(id);
	return *ret_profile ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

ENTRY_DEVICE(nvmlDeviceGetGpuInstanceRemainingCapacity, (unsigned int id, unsigned int *count),
	(id, count))
{
	const struct mig_profile *profile;
	struct mig_card card;
	nvmlReturn_t result = check_card(index, id, count, &card, &profile);

	if (result == NVML_SUCCESS)
		*count = mig_room(node_board(), &card, profile);
	return result;
}

static nvmlReturn_t create(int index, unsigned int id, int start, nvmlGpuInstance_t *ret_instance)
{
	const struct mig_profile *profile;
	struct mig_card card;
	nvmlReturn_t result = check_card(index, id, ret_instance, &card, &profile);
	unsigned int made;

	if (result != NVML_SUCCESS)
		return result;
	if (mig_create(node_machine(), index, profile, start, &made))
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	mig_read(node_machine(), index, &card);
	*ret_instance = part_instance_handle(index, mig_find(&card, made));
	return NVML_SUCCESS;
}

ENTRY_DEVICE(
	nvmlDeviceCreateGpuInstance, (unsigned int id, nvmlGpuInstance_t *instance), (id, instance))
{
	return create(index, id, -1, instance);
}

ENTRY_DEVICE(nvmlDeviceCreateGpuInstanceWithPlacement,
	(unsigned int id, const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *instance),
	(id, placement, instance))
{
	const struct mig_profile *profile = find_profile(id);

	if (!placement || (profile && (placement->size != profile->memory_slices ||
					      placement->start >= MIG_MEMORY_SLICES ||
					      !(profile->starts >> placement->start & 1))))
		return NVML_ERROR_INVALID_ARGUMENT;
	return create(index, id, (int)placement->start, instance);
}

ENTRY_DEVICE(nvmlDeviceGetGpuInstances,
	(unsigned int id, nvmlGpuInstance_t *instances, unsigned int *count),
	(id, instances, count))
{
	const struct mig_profile *profile;
	struct mig_card card;
	nvmlReturn_t result = check_card(index, id, count, &card, &profile);

	if (result != NVML_SUCCESS)
		return result;
	if (!instances)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	for (int place = 0; place < MIG_INSTANCES_MAX; place++)
		if (card.instance[place].is_used && card.instance[place].profile_id == id)
			instances[(*count)++] = part_instance_handle(index, place);
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetGpuInstanceById, (unsigned int id, nvmlGpuInstance_t *instance),
	(id, instance))
{
	struct mig_card card;
	int place;

	if (!instance)
		return NVML_ERROR_INVALID_ARGUMENT;
	mig_read(node_machine(), index, &card);
	if (!card.is_enabled)
		return NVML_ERROR_NOT_SUPPORTED;
	place = mig_find(&card, id);
	if (place < 0)
		return NVML_ERROR_NOT_FOUND;
	*instance = part_instance_handle(index, place);
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t instance), (instance))
{
	struct mig_card card;
	int index, place;

	if (!part_find_instance(instance, &index, &place))
		return NVML_ERROR_INVALID_ARGUMENT;
	mig_read(node_machine(), index, &card);
	if (!card.instance[place].is_used)
		return NVML_ERROR_INVALID_ARGUMENT;
	switch (mig_destroy(node_machine(), index, card.instance[place].id)) {
	case 0:
		return NVML_SUCCESS;
	case MIG_E_BUSY:
		return NVML_ERROR_IN_USE;
	default:
		return NVML_ERROR_INVALID_ARGUMENT;
	}
}

ENTRY_BODY(nvmlGpuInstanceGetInfo, (nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info),
	(instance, info))
{
	const struct mig_profile *profile;
	struct mig_card card;
	int index, place;

	if (!info || !part_find_instance(instance, &index, &place))
		return NVML_ERROR_INVALID_ARGUMENT;
	mig_read(node_machine(), index, &card);
	if (!card.instance[place].is_used)
		return NVML_ERROR_INVALID_ARGUMENT;
	profile = find_profile(card.instance[place].profile_id);
	*info = (nvmlGpuInstanceInfo_t){.device = node_handle(index),
		.id = card.instance[place].id,
		.profileId = profile->id,
		.placement = {card.instance[place].start, profile->memory_slices}};
	return NVML_SUCCESS;
}
