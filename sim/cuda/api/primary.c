/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts. */
#include "sim/cuda/api/entry.h"

ENTRY_BODY(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice ordinal), (context, ordinal))
{
	struct device *device = driver_device(ordinal);
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	result = context_retain_primary(device);
	if (result == CUDA_SUCCESS)
		*context = (CUcontext)device->primary;
	return result;
}

ENTRY_BODY(cuDevicePrimaryCtxRelease, (CUdevice ordinal), (ordinal))
{
	struct device *device = driver_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	if (device->primary_refs == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_release_primary(device);
	return CUDA_SUCCESS;
}

ENTRY_CALL(
	cuDevicePrimaryCtxRelease_v2, (CUdevice ordinal), cuDevicePrimaryCtxRelease_body(ordinal))

/* What a kernel has done is told here, too, and the work is done all the same; that is estimated. */
ENTRY_BODY(cuDevicePrimaryCtxReset, (CUdevice ordinal), (ordinal))
{
	struct device *device = driver_device(ordinal);
	CUresult fault = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	/* References stay: they are released later, and the next retain brings it to life. */
	if (device->primary && context_is_alive(device->primary)) {
		fault = context_fault(device->primary);
		context_end(device->primary);
	}
	return fault;
}

ENTRY_CALL(cuDevicePrimaryCtxReset_v2, (CUdevice ordinal), cuDevicePrimaryCtxReset_body(ordinal))

ENTRY_BODY(cuDevicePrimaryCtxGetState, (CUdevice ordinal, unsigned int *flags, int *active),
	(ordinal, flags, active))
{
	struct device *device = driver_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	if (flags)
		*flags = device->primary_flags;
	if (active)
		*active = device->primary && context_is_alive(device->primary);
	return CUDA_SUCCESS;
}

static CUresult set_primary_flags(CUdevice ordinal, unsigned int flags, bool is_refused_when_active)
{
	struct device *device = driver_device(ordinal);
	CUresult result = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!context_are_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	if (device->primary && context_is_alive(device->primary)) {
		if (is_refused_when_active)
			result = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
		else
			device->primary->flags = flags;
	}
	if (result == CUDA_SUCCESS)
		device->primary_flags = flags;
	return result;
}

ENTRY_CALL(cuDevicePrimaryCtxSetFlags, (CUdevice ordinal, unsigned int flags),
	set_primary_flags(ordinal, flags, true))

ENTRY_CALL(cuDevicePrimaryCtxSetFlags_v2, (CUdevice ordinal, unsigned int flags),
	set_primary_flags(ordinal, flags, false))
