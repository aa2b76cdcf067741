/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: the mode of a card, and its parts as devices. */
#include "sim/nvml/entry.h"

static bool has_mig(void)
{
	return mig_profile_at(node_board(), 0) != NULL;
}

ENTRY_DEVICE(
	nvmlDeviceGetMigMode, (unsigned int *current, unsigned int *pending), (current, pending))
{
	struct mig_card card;

	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!has_mig())
		return NVML_ERROR_NOT_SUPPORTED;
	mig_read(node_machine(), index, &card);
	*current = card.is_enabled;
	*pending = card.is_pending;
	return NVML_SUCCESS;
}

/* Where processes or instances are in the way, the mode is pending until it is set again without them. */
ENTRY_DEVICE(
	nvmlDeviceSetMigMode, (unsigned int mode, nvmlReturn_t *activation), (mode, activation))
{
	if (!activation || mode > NVML_DEVICE_MIG_ENABLE)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!has_mig())
		return NVML_ERROR_NOT_SUPPORTED;
	*activation = mig_set_mode(node_machine(), index, mode == NVML_DEVICE_MIG_ENABLE)
			      ? NVML_ERROR_IN_USE
			      : NVML_SUCCESS;
	return NVML_SUCCESS;
}

/* None while the card is whole (measured). */
static unsigned int most_parts(int index)
{
	struct mig_card card;

	mig_read(node_machine(), index, &card);
	return card.is_enabled ? MIG_PROCESSOR_SLICES : 0;
}

ENTRY_ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, most_parts(index))

ENTRY_PART(nvmlDeviceIsMigDeviceHandle, (unsigned int *is_mig), (is_mig))
{
	if (!is_mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	*is_mig = !part->is_whole;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetMigDeviceHandleByIndex,
	(unsigned int mig_index, nvmlDevice_t *mig_device), (mig_index, mig_device))
{
	struct part part;
	nvmlDevice_t found;

	if (!mig_device)
		return NVML_ERROR_INVALID_ARGUMENT;
	found = part_at(index, mig_index, &part);
	if (!found)
		return NVML_ERROR_NOT_FOUND;
	*mig_device = found;
	return NVML_SUCCESS;
}

/* Of a device that is no MIG device all three are refused (measured). */
#define OF_PART(symbol, type, value)                        \
	ENTRY_PART(symbol, (type * ret_value), (ret_value)) \
	{                                                   \
		if (!ret_value || part->is_whole)           \
			return NVML_ERROR_INVALID_ARGUMENT; \
		*ret_value = value;                         \
		return NVML_SUCCESS;                        \
	}
OF_PART(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t, node_handle(part->index))
OF_PART(nvmlDeviceGetGpuInstanceId, unsigned int, part->id)
OF_PART(nvmlDeviceGetComputeInstanceId, unsigned int, part->compute)

/* Only of MIG devices (measured: a whole H200 answers so). */
ENTRY_PART(nvmlDeviceGetAttributes, (nvmlDeviceAttributes_t * attributes), (attributes))
{
	const struct mig_profile *profile = part->profile;

	if (!attributes)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (part->is_whole)
		return NVML_ERROR_NOT_SUPPORTED;
	*attributes = (nvmlDeviceAttributes_t){
		.multiprocessorCount = mig_sm_count(profile, part->slices),
		.sharedCopyEngineCount = profile->copy_engines,
		.sharedDecoderCount = profile->decoders,
		.sharedJpegCount = profile->media_engines,
		.sharedOfaCount = profile->media_engines,
		.gpuInstanceSliceCount = profile->slices,
		.computeInstanceSliceCount = part->slices,
		.memorySizeMB = profile->memory_mib,
	};
	return NVML_SUCCESS;
}
ENTRY_PART_ALIAS(nvmlDeviceGetAttributes_v2, nvmlDeviceGetAttributes,
	(nvmlDeviceAttributes_t * attributes), (attributes))
