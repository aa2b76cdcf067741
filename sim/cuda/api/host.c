/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver allocates or is told of. */
#include <stdint.h>
#include <sys/mman.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/host.h"

ENTRY_CURRENT(
	cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
	void *memory;
	CUresult result;

	if (!pointer || bytes == 0 ||
		(flags & ~(unsigned int)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
					 CU_MEMHOSTALLOC_WRITECOMBINED)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	LOCK_SCOPE(&driver.memory_lock);
	result = host_add(memory, bytes, flags, false);
	if (result != CUDA_SUCCESS)
		munmap(memory, bytes);
	else
		*pointer = memory;
	return result;
}

ENTRY_CALL_CURRENT(cuMemAllocHost, (void **pointer, unsigned int bytesize),
	cuMemHostAlloc_body(entry.context, pointer, bytesize, 0))

ENTRY_CALL_CURRENT(cuMemAllocHost_v2, (void **pointer, size_t bytesize),
	cuMemHostAlloc_body(entry.context, pointer, bytesize, 0))

ENTRY_CURRENT(cuMemFreeHost, (void *pointer), (pointer))
{
	size_t bytes;

	LOCK_SCOPE(&driver.memory_lock);
	bytes = host_remove(pointer, false);
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	munmap(pointer, bytes);
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuMemHostRegister, (void *pointer, size_t bytes, unsigned int flags),
	(pointer, bytes, flags))
{
	if (!pointer || bytes == 0 || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return host_add(pointer, bytes, flags, true);
}

ENTRY_CALL_CURRENT(cuMemHostRegister_v2, (void *pointer, size_t bytesize, unsigned int flags),
	cuMemHostRegister_body(entry.context, pointer, bytesize, flags))

ENTRY_CURRENT(cuMemHostUnregister, (void *pointer), (pointer))
{
	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return host_remove(pointer, true) > 0 ? CUDA_SUCCESS
					      : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

ENTRY_CURRENT(cuMemHostGetDevicePointer_v2, (CUdeviceptr * dptr, void *pointer, unsigned int flags),
	(dptr, pointer, flags))
{
	bool is_known;

	if (!dptr || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	is_known = host_find((uintptr_t)pointer);
	if (!is_known)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = (CUdeviceptr)(uintptr_t)pointer;
	return CUDA_SUCCESS;
}

/* No host memory has an address of 32 bits. */
ENTRY_CALL(cuMemHostGetDevicePointer, (CUdeviceptr_v1 * dptr, void *pointer, unsigned int flags),
	CUDA_ERROR_INVALID_CONTEXT)

ENTRY_BODY(cuMemHostGetFlags, (unsigned int *flags, void *pointer), (flags, pointer))
{
	struct host_range *range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	range = host_find((uintptr_t)pointer);
	if (range) {
		*flags = range->flags;
		result = CUDA_SUCCESS;
	}
	return result;
}
