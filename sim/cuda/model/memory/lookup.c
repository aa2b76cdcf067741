/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to the allocation it lies in, whatever kind it is. */
#include "sim/cuda/model/memory/lookup.h"

#include <stdlib.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"

bool lookup_extent(CUdeviceptr address, struct extent *ret_extent)
{
	struct owner *owner = address_find_owner(address);

	return owner && owner->ops->find(owner, address, ret_extent);
}

CUresult lookup_free(CUdeviceptr base)
{
	struct owner *owner = address_find_owner(base);

	return owner && owner->ops->free ? owner->ops->free(owner, base) : CUDA_ERROR_INVALID_VALUE;
}

CUresult lookup_free_at(CUdeviceptr base, uint64_t at_ns)
{
	struct owner *owner = address_find_owner(base);

	return owner && owner->ops->free_at ? owner->ops->free_at(owner, base, at_ns)
					    : CUDA_ERROR_INVALID_VALUE;
}

/* Under memory_lock. */
static CUresult use(CUdeviceptr address, size_t bytes, struct device *device, bool *ret_is_host)
{
	CUdeviceptr end = address + bytes;

	*ret_is_host = !address_find_owner(address);
	if (*ret_is_host)
		return CUDA_SUCCESS;
	/* Mapped memory may go on in the next mapping; other memory ends where it ends. */
	while (address < end) {
		struct extent extent;

		if (!lookup_extent(address, &extent) || !extent.is_accessible)
			return CUDA_ERROR_INVALID_VALUE;
		if (extent.touched)
			*extent.touched = true;
		if (extent.is_managed && device && !extent.plain->stays_on_host)
			heap_move_managed(extent.plain, device);
		address = extent.base + extent.bytes;
	}
	return CUDA_SUCCESS;
}

CUresult lookup_use(CUdeviceptr address, size_t bytes, struct device *device, bool *ret_is_host)
{
	LOCK_SCOPE(&driver.memory_lock);
	return use(address, bytes, device, ret_is_host);
}
