/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of a device, and MIG, which is never enabled here. */
#include "sim/nvml/answer.h"

BODY(nvmlDeviceGetEccMode, nvmlDevice_t device, nvmlEnableState_t *current,
	nvmlEnableState_t *pending)
{
	ENTER(nvmlDeviceGetEccMode);
	REQUIRE(node_index(device) >= 0 && current && pending);
	if (!node_board()->has_ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = NVML_FEATURE_ENABLED;
	*pending = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

BODY(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, nvmlMemoryErrorType_t type,
	nvmlEccCounterType_t counter, unsigned long long *count)
{
	ENTER(nvmlDeviceGetTotalEccErrors);
	REQUIRE(node_index(device) >= 0 && count);
	REQUIRE((unsigned int)type <= NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
	REQUIRE((unsigned int)counter <= NVML_AGGREGATE_ECC);
	if (!node_board()->has_ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
ANSWER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
/* Without a connector the first is still "enabled", the second "disabled" (measured). */
ANSWER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)

BODY(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	ENTER(nvmlDeviceGetMigMode);
	REQUIRE(node_index(device) >= 0 && current && pending);
	if (!node_board()->has_mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = NVML_DEVICE_MIG_DISABLE;
	*pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)
ANSWER(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)

BODY(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned int index,
	nvmlDevice_t *mig_device)
{
	ENTER(nvmlDeviceGetMigDeviceHandleByIndex);
	REQUIRE(node_index(device) >= 0 && mig_device);
	return NVML_ERROR_NOT_FOUND;
}

/* Of a device that is no MIG device all three are refused (measured). */
ANSWER_NONE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t, NVML_ERROR_INVALID_ARGUMENT)
ANSWER_NONE(nvmlDeviceGetGpuInstanceId, unsigned int, NVML_ERROR_INVALID_ARGUMENT)
ANSWER_NONE(nvmlDeviceGetComputeInstanceId, unsigned int, NVML_ERROR_INVALID_ARGUMENT)
