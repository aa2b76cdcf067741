/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with other processes: not simulated yet. */
#include "sim/cuda/entry.h"

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
