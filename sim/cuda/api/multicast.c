/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multicast objects. Only what they do to memory is simulated: they take none of their own, and keep what is bound to them
 * until it is unbound or they end. All of it is as documented, and as in NVIDIA's open kernel modules of driver 535, which keep
 * most; none is measured.
 */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/multicast.h"
#include "sim/cuda/model/memory/vmm.h"

static bool is_object(const CUmulticastObjectProp *prop)
{
	return prop && prop->numDevices > 0 && prop->size > 0 && vmm_is_aligned(prop->size) &&
	       prop->flags == 0;
}

ENTRY_BODY(cuMulticastCreate,
	(CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *prop), (handle, prop))
{
	if (!handle || !is_object(prop))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return vmm_create_multicast(prop, handle);
}

ENTRY_BODY(cuMulticastAddDevice, (CUmemGenericAllocationHandle handle, CUdevice device),
	(handle, device))
{
	struct multicast *multicast;

	LOCK_SCOPE(&driver.memory_lock);
	multicast = vmm_multicast(handle, 0, 0);
	if (!multicast || !driver_device(device))
		return CUDA_ERROR_INVALID_VALUE;
	return multicast_add_device(multicast, device);
}

/* Under memory_lock. */
static CUresult bind(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle number, size_t memory_offset, size_t size)
{
	struct multicast *multicast = vmm_multicast(handle, offset, size);
	struct multicast_place place = {.offset = offset, .size = size};
	CUmemAllocationProp prop;
	struct handle *memory;
	CUresult result;

	if (!multicast || size == 0 || !vmm_is_aligned(offset) || !vmm_is_aligned(size) ||
		!vmm_is_aligned(memory_offset) || vmm_get_prop(number, &prop) != CUDA_SUCCESS ||
		prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	place.device = prop.location.id;
	memory = vmm_hold(number, memory_offset + size - 1);
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	result = multicast_bind(multicast, place, memory);
	if (result != CUDA_SUCCESS)
		vmm_let_go(memory);
	return result;
}

ENTRY_BODY(cuMulticastBindMem,
	(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
		size_t memory_offset, size_t size, unsigned long long flags),
	(handle, offset, memory, memory_offset, size, flags))
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return bind(handle, offset, memory, memory_offset, size);
}

/* As documented: memory of a device is bound for that device. */
static bool lies_on(CUmemGenericAllocationHandle number, CUdevice device)
{
	CUmemAllocationProp prop;

	return vmm_get_prop(number, &prop) == CUDA_SUCCESS && prop.location.id == device;
}

ENTRY_BODY(cuMulticastBindMem_v2,
	(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
		CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
		unsigned long long flags),
	(handle, device, offset, memory, memory_offset, size, flags))
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	if (!lies_on(memory, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return bind(handle, offset, memory, memory_offset, size);
}

/* Of created memory alone. Under memory_lock. */
static CUresult bind_at(CUmemGenericAllocationHandle handle, const CUdevice *device, size_t offset,
	CUdeviceptr memory, size_t size)
{
	struct owner *owner = address_find_owner(memory);
	CUmemGenericAllocationHandle number;
	struct extent extent;
	CUresult result;

	if (!owner || !owner->ops->find(owner, memory, &extent) ||
		vmm_retain(memory, &number) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	result = device && !lies_on(number, *device)
			 ? CUDA_ERROR_INVALID_DEVICE
			 : bind(handle, offset, number, memory - extent.base, size);
	vmm_release(number);
	return result;
}

ENTRY_BODY(cuMulticastBindAddr,
	(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr memory, size_t size,
		unsigned long long flags),
	(handle, offset, memory, size, flags))
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return bind_at(handle, NULL, offset, memory, size);
}

ENTRY_BODY(cuMulticastBindAddr_v2,
	(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, CUdeviceptr memory,
		size_t size, unsigned long long flags),
	(handle, device, offset, memory, size, flags))
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return bind_at(handle, &device, offset, memory, size);
}

ENTRY_BODY(cuMulticastUnbind,
	(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size),
	(handle, device, offset, size))
{
	struct multicast_place place = {device, offset, size};
	struct multicast *multicast;
	struct handle *memory = NULL;

	LOCK_SCOPE(&driver.memory_lock);
	multicast = vmm_multicast(handle, offset, size);
	if (multicast)
		memory = multicast_unbind(multicast, place);
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	vmm_let_go(memory);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMulticastGetGranularity,
	(size_t * granularity, const CUmulticastObjectProp *prop,
		CUmulticastGranularity_flags option),
	(granularity, prop, option))
{
	if (!granularity || !prop || (unsigned int)option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity =
		driver.board->chunk_bytes > ADDRESS_UNIT ? driver.board->chunk_bytes : ADDRESS_UNIT;
	return CUDA_SUCCESS;
}
