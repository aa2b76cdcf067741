/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to the allocation it lies in, whatever kind it is. */
#include "sim/cuda/model/memory/lookup.h"

#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/memory/share.h"
#include "sim/cuda/model/memory/vmm.h"

bool lookup_extent(CUdeviceptr address, struct extent *ret_extent)
{
	struct owner *owner = address_find_owner(address);

	if (!owner)
		return false;
	switch (owner->type) {
	case OWNER_BLOCK:
	case OWNER_PLAIN:
	case OWNER_MANAGED:
		return heap_find(owner, address, ret_extent);
	case OWNER_POOL:
		return pool_find(owner, address, ret_extent);
	case OWNER_GRAPH:
		return graph_find(owner, address, ret_extent);
	case OWNER_RESERVATION:
		return vmm_find(owner, address, ret_extent);
	case OWNER_OPENED:
		return share_find(owner, address, ret_extent);
	}
	return false;
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
	CUresult result;

	pthread_mutex_lock(&driver.memory_lock);
	result = use(address, bytes, device, ret_is_host);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}
