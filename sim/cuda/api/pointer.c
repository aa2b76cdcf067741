/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of pointers. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/host.h"
#include "sim/cuda/model/memory/lookup.h"

/* Under memory_lock. */
static CUresult get_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address,
	const struct extent *extent, const struct host_range *host)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = extent ? (CUcontext)extent->context : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = extent ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (extent && !extent->is_managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = extent ? extent->base : host->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = extent && extent->is_managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = extent && extent->device	   ? extent->device->ordinal
			       : extent && extent->context ? extent->context->device->ordinal
							   : CU_DEVICE_INVALID;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = extent ? extent->base : host->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = extent ? extent->bytes : host->bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = extent ? (CUmemoryPool)extent->pool : NULL;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

ENTRY_BODY(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr dptr),
	(data, attribute, dptr))
{
	struct extent extent;
	struct host_range *host;
	bool is_device;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	host = is_device ? NULL : host_find((uintptr_t)dptr);
	if (is_device || host)
		result = get_attribute(data, attribute, dptr, is_device ? &extent : NULL, host);
	return result;
}

/* Memory nobody knows is no error here: its attributes are zero. */
ENTRY_BODY(cuPointerGetAttributes,
	(unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr dptr),
	(count, attributes, data, dptr))
{
	struct extent extent;
	struct host_range unknown = {0};
	struct host_range *host;
	bool is_device;

	if (!attributes || !data || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	host = is_device ? NULL : host_find((uintptr_t)dptr);
	for (unsigned int i = 0; i < count; i++) {
		if (!data[i])
			continue;
		if (!is_device && !host && attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
			*(unsigned int *)data[i] = 0;
			continue;
		}
		(void)get_attribute(data[i], attributes[i], is_device || host ? dptr : 0,
			is_device ? &extent : NULL, host ? host : &unknown);
	}
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuPointerSetAttribute,
	(const void *value, CUpointer_attribute attribute, CUdeviceptr dptr),
	(value, attribute, dptr))
{
	struct extent extent;
	bool is_device;

	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	return is_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
