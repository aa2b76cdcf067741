/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of a device, and its errors. */
#include "sim/machine/event.h"
#include "sim/nvml/entry.h"

ENTRY_DEVICE(nvmlDeviceGetEccMode, (nvmlEnableState_t * current, nvmlEnableState_t *pending),
	(current, pending))
{
	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!node_board()->has_ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = NVML_FEATURE_ENABLED;
	*pending = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetTotalEccErrors,
	(nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count),
	(type, counter, count))
{
	if (!count || (unsigned int)type > NVML_MEMORY_ERROR_TYPE_UNCORRECTED ||
		(unsigned int)counter > NVML_AGGREGATE_ECC)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!node_board()->has_ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = event_ecc_errors(node_machine(), index, type == NVML_MEMORY_ERROR_TYPE_CORRECTED);
	return NVML_SUCCESS;
}

/* All errors are in the memory of the card itself. */
ENTRY_DEVICE(nvmlDeviceGetMemoryErrorCounter,
	(nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
		unsigned long long *count),
	(type, counter, location, count))
{
	nvmlReturn_t result = nvmlDeviceGetTotalEccErrors_body(index, type, counter, count);

	if ((unsigned int)location >= NVML_MEMORY_LOCATION_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (result == NVML_SUCCESS && location != NVML_MEMORY_LOCATION_DRAM)
		*count = 0;
	return result;
}

/* Cards remap rows since Ampere. An error does not lead to a remapped row here. */
ENTRY_DEVICE(nvmlDeviceGetRemappedRows,
	(unsigned int *corrected, unsigned int *uncorrected, unsigned int *is_pending,
		unsigned int *has_failed),
	(corrected, uncorrected, is_pending, has_failed))
{
	if (!corrected || !uncorrected || !is_pending || !has_failed)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (node_board()->compute_major < 8)
		return NVML_ERROR_NOT_SUPPORTED;
	*corrected = *uncorrected = *is_pending = *has_failed = 0;
	return NVML_SUCCESS;
}

ENTRY_ANSWER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t,
	NVML_GPU_VIRTUALIZATION_MODE_NONE)
ENTRY_ANSWER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
ENTRY_ANSWER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
/* Without a connector the first is still "enabled", the second "disabled" (measured). */
ENTRY_ANSWER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ENTRY_ANSWER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
