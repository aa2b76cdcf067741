/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of graphs, by device. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph_memory.h"

ENTRY_BODY(cuDeviceGraphMemTrim, (CUdevice ordinal), (ordinal))
{
	struct device *device = driver_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	graph_memory_trim(device);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetGraphMemAttribute,
	(CUdevice ordinal, CUgraphMem_attribute attribute, void *value),
	(ordinal, attribute, value))
{
	struct device *device = driver_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return graph_memory_get(device, attribute, value);
}

ENTRY_BODY(cuDeviceSetGraphMemAttribute,
	(CUdevice ordinal, CUgraphMem_attribute attribute, void *value),
	(ordinal, attribute, value))
{
	struct device *device = driver_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || *(const cuuint64_t *)value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return graph_memory_reset(device, attribute);
}
