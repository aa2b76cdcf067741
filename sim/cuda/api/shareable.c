/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared by descriptors and handles: created memory and pools. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/memory/vmm.h"

/* The handle that the program gets for kept memory: a descriptor, or bytes. */
static CUresult give(
	const struct machine_kept *kept, CUmemAllocationHandleType type, void *ret_handle)
{
	struct ticket ticket = {.magic = TICKET_FABRIC,
		.index = kept->index,
		.generation = kept->generation,
		.pid = getpid()};
	int fd;

	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memset(ret_handle, 0, sizeof(CUmemFabricHandle));
		memcpy(ret_handle, &ticket, sizeof(ticket));
		return CUDA_SUCCESS;
	}
	fd = machine_kept_descriptor(driver.machine, kept->index);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(ret_handle, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

/* The other way: becomes a holder of what a handle names. */
static CUresult accept_handle(
	void *handle, CUmemAllocationHandleType type, struct machine_kept *ret_kept)
{
	struct ticket ticket = {.magic = 0};
	bool is_fabric = type == CU_MEM_HANDLE_TYPE_FABRIC;

	if (is_fabric && handle)
		memcpy(&ticket, handle, sizeof(ticket));
	if (is_fabric && ticket.magic != TICKET_FABRIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_fabric && machine_kept_of_descriptor(driver.machine, (int)(intptr_t)handle,
				  &ticket.index, &ticket.generation) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return ipc_hold(ticket.index, ticket.generation, is_fabric, ret_kept)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static bool is_simulated(CUmemAllocationHandleType type)
{
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	       type == CU_MEM_HANDLE_TYPE_FABRIC;
}

/* Other processes of the simulated node cannot import a multicast object. */
static CUresult give_multicast(
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, void *ret_handle)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	int fd;

	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		result = vmm_keep_multicast(handle, type);
	if (result != CUDA_SUCCESS)
		return result;
	/* Older C libraries have no memfd_create(). */
	fd = (int)syscall(SYS_memfd_create, "multicast", 1 /* MFD_CLOEXEC */);
	memcpy(ret_handle, &fd, sizeof(fd));
	return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

ENTRY_BODY(cuMemExportToShareableHandle,
	(void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
		unsigned long long flags),
	(shareable, handle, type, flags))
{
	struct machine_kept kept;
	CUresult result;

	if (!shareable || flags != 0 || !is_simulated(type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	if (vmm_multicast(handle, 0, 0))
		return give_multicast(handle, type, shareable);
	result = vmm_keep(handle, type, &kept);
	if (result == CUDA_SUCCESS)
		result = give(&kept, type, shareable);
	return result;
}

ENTRY_BODY(cuMemImportFromShareableHandle,
	(CUmemGenericAllocationHandle * handle, void *os_handle, CUmemAllocationHandleType type),
	(handle, os_handle, type))
{
	struct machine_kept kept;
	CUresult result;

	if (!handle || !is_simulated(type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = accept_handle(os_handle, type, &kept);
	if (result == CUDA_SUCCESS) {
		result = vmm_adopt(&kept, type, handle);
		if (result != CUDA_SUCCESS)
			ipc_drop(kept.index);
	}
	return result;
}

static CUresult keep_pool(
	struct pool *pool, CUmemAllocationHandleType type, struct machine_kept *ret_kept)
{
	if (!pool || pool->is_imported || !(pool->props.handleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->kept == 0 && !ipc_keep(pool->device, MACHINE_POOL, pool->reserved,
				       MACHINE_SHOWN_MAKER, &pool->made))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->kept = pool->made.index + 1;
	*ret_kept = pool->made;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemPoolExportToShareableHandle,
	(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags),
	(handle, pool, type, flags))
{
	struct machine_kept kept;
	CUresult result;

	if (!handle || flags != 0 || !is_simulated(type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = keep_pool(pool_check(pool), type, &kept);
	if (result == CUDA_SUCCESS)
		result = give(&kept, type, handle);
	return result;
}

static CUresult adopt_pool(const struct machine_kept *kept, CUmemoryPool *ret_pool)
{
	struct device *device = driver_find_index(kept->device);
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct pool *pool;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	props.location.id = device->ordinal;
	pool = pool_new(device, &props);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->is_imported = true;
	pool->kept = kept->index + 1;
	pool->made = *kept;
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemPoolImportFromShareableHandle,
	(CUmemoryPool * pool, void *handle, CUmemAllocationHandleType type,
		unsigned long long flags),
	(pool, handle, type, flags))
{
	struct machine_kept kept;
	CUresult result;

	if (!pool || flags != 0 || !is_simulated(type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = accept_handle(handle, type, &kept);
	if (result == CUDA_SUCCESS) {
		result = adopt_pool(&kept, pool);
		if (result != CUDA_SUCCESS)
			ipc_drop(kept.index);
	}
	return result;
}

ENTRY_BODY(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr dptr), (data, dptr))
{
	struct extent extent;
	struct ticket ticket;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	if (!lookup_extent(dptr, &extent) || !extent.pool || extent.pool->kept == 0)
		return CUDA_ERROR_INVALID_VALUE;
	ticket = (struct ticket){.magic = TICKET_POOLED,
		.index = extent.pool->made.index,
		.generation = extent.pool->made.generation,
		.bytes = extent.bytes,
		.pid = getpid()};
	memset(data, 0, sizeof(*data));
	memcpy(data, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemPoolImportPointer,
	(CUdeviceptr * dptr, CUmemoryPool handle, CUmemPoolPtrExportData *data),
	(dptr, handle, data))
{
	struct context *context;
	struct ticket ticket;
	struct pool *pool;
	CUresult result;

	if (!dptr || !data)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_current(&context);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&ticket, data, sizeof(ticket));
	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(handle);
	if (!pool || !pool->is_imported || ticket.magic != TICKET_POOLED ||
		ticket.index != pool->made.index || ticket.generation != pool->made.generation)
		return CUDA_ERROR_INVALID_VALUE;
	return ipc_open(context, pool->device, &ticket, false, dptr) ? CUDA_SUCCESS
								     : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Created memory at an address, where it was created to be shared. */
static bool keep_mapped(CUdeviceptr dptr, struct machine_kept *ret_kept)
{
	CUmemGenericAllocationHandle number;
	CUresult result = vmm_retain(dptr, &number);

	if (result != CUDA_SUCCESS)
		return false;
	result = vmm_keep(number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, ret_kept);
	vmm_release(number);
	return result == CUDA_SUCCESS;
}

ENTRY_BODY(cuMemGetHandleForAddressRange,
	(void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType type,
		unsigned long long flags),
	(handle, dptr, size, type, flags))
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct machine_kept kept = {.index = 0};
	struct owner *owner;
	int fd;

	if (!handle || size == 0 || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	owner = address_find_owner(dptr);
	if (owner &&
		(heap_keep(owner, &kept.index, &kept.generation) || keep_mapped(dptr, &kept))) {
		fd = machine_kept_descriptor(driver.machine, kept.index);
		result = fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
		if (fd >= 0)
			memcpy(handle, &fd, sizeof(fd));
	}
	return result;
}
