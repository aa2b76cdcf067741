/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes: not simulated yet. */
#include "sim/cuda/context.h"
#include "sim/cuda/entry.h"
#include "sim/cuda/lookup.h"

ENTRY_BODY(cuMemExportToShareableHandle,
	(void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
		unsigned long long flags),
	(shareable, handle, type, flags))
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY_BODY(cuMemImportFromShareableHandle,
	(CUmemGenericAllocationHandle * handle, void *os_handle, CUmemAllocationHandleType type),
	(handle, os_handle, type))
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY_BODY(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr dptr), (handle, dptr))
{
	struct context *context;
	struct extent extent;
	CUresult result = context_current(&context);
	bool is_shareable;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver.memory_lock);
	is_shareable = handle != NULL && lookup_extent(dptr, &extent) && !extent.is_managed &&
		       extent.pool == NULL;
	pthread_mutex_unlock(&driver.memory_lock);
	return is_shareable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
