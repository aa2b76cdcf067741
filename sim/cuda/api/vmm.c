/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/vmm.h"

/* The wished address is a hint, and not followed. */
ENTRY_BODY(cuMemAddressReserve,
	(CUdeviceptr * dptr, size_t size, size_t alignment, CUdeviceptr address,
		unsigned long long flags),
	(dptr, size, alignment, address, flags))
{
	if (!dptr || size == 0 || !vmm_is_aligned(size) || flags != 0 ||
		(alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_reserve(size, alignment, dptr);
}

ENTRY_BODY(cuMemAddressFree, (CUdeviceptr dptr, size_t size), (dptr, size))
{
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_unreserve(dptr, size);
}

ENTRY_BODY(cuMemCreate,
	(CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
		unsigned long long flags),
	(handle, size, prop, flags))
{
	CUresult result = vmm_check(prop);

	if (!handle || size == 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	if (!vmm_is_aligned(size))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_create(size, prop, handle);
}

ENTRY_BODY(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
{
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_release(handle);
}

ENTRY_BODY(cuMemMap,
	(CUdeviceptr dptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		unsigned long long flags),
	(dptr, size, offset, handle, flags))
{
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_map(dptr, size, offset, handle, flags);
}

ENTRY_BODY(cuMemUnmap, (CUdeviceptr dptr, size_t size), (dptr, size))
{
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_unmap(dptr, size);
}

ENTRY_BODY(cuMemSetAccess,
	(CUdeviceptr dptr, size_t size, const CUmemAccessDesc *descriptions, size_t count),
	(dptr, size, descriptions, count))
{
	CUresult result = CUDA_SUCCESS;

	if (!descriptions || count == 0 || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (descriptions[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			!driver_device(descriptions[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		result = vmm_set_access(dptr, size, descriptions[i].flags);
	}
	return result;
}

ENTRY_BODY(cuMemGetAccess,
	(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr dptr),
	(flags, location, dptr))
{
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_get_access(dptr, flags);
}

ENTRY_BODY(cuMemGetAllocationGranularity,
	(size_t * granularity, const CUmemAllocationProp *prop,
		CUmemAllocationGranularity_flags option),
	(granularity, prop, option))
{
	CUresult result = vmm_check(prop);

	if (!granularity || (unsigned int)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*granularity = driver.board->chunk_bytes > ADDRESS_UNIT ? driver.board->chunk_bytes
									: ADDRESS_UNIT;
	return result;
}

ENTRY_BODY(cuMemGetAllocationPropertiesFromHandle,
	(CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle), (prop, handle))
{
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_get_prop(handle, prop);
}

ENTRY_BODY(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address),
	(handle, address))
{
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_retain((CUdeviceptr)(uintptr_t)address, handle);
}
