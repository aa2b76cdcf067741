/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory the driver knows, and what it says of pointers. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/lookup.h"

static struct host_range *ranges; /* under memory_lock */

struct host_range *lookup_host(uintptr_t address)
{
	struct host_range *range = ranges;

	while (range && (address < range->base || address >= range->base + range->bytes))
		range = range->next;
	return range;
}

static CUresult add_range(void *base, size_t bytes, unsigned int flags, bool is_registered)
{
	struct host_range *range = calloc(1, sizeof(*range));
	CUresult result = CUDA_SUCCESS;

	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->base = (uintptr_t)base;
	range->bytes = bytes;
	range->flags = flags;
	range->is_registered = is_registered;
	pthread_mutex_lock(&driver.memory_lock);
	if (is_registered && lookup_host(range->base)) {
		result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else {
		range->next = ranges;
		ranges = range;
	}
	pthread_mutex_unlock(&driver.memory_lock);
	if (result != CUDA_SUCCESS)
		free(range);
	return result;
}

/* Forgets the range that starts at `base`. Returns whether there was one of this kind. */
static bool remove_range(void *base, bool is_registered, size_t *ret_bytes)
{
	struct host_range **place = &ranges;
	struct host_range *range;

	pthread_mutex_lock(&driver.memory_lock);
	while (*place &&
		((*place)->base != (uintptr_t)base || (*place)->is_registered != is_registered))
		place = &(*place)->next;
	range = *place;
	if (range)
		*place = range->next;
	pthread_mutex_unlock(&driver.memory_lock);
	if (!range)
		return false;
	*ret_bytes = range->bytes;
	free(range);
	return true;
}

static CUresult alloc(void **pointer, size_t bytes, unsigned int flags)
{
	struct context *context;
	void *memory;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || bytes == 0 ||
		(flags & ~(unsigned int)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
					 CU_MEMHOSTALLOC_WRITECOMBINED)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = add_range(memory, bytes, flags, false);
	if (result != CUDA_SUCCESS)
		munmap(memory, bytes);
	else
		*pointer = memory;
	return result;
}

ENTRY_BODY(cuMemAllocHost, (void **pointer, unsigned int bytesize), (pointer, bytesize))
{
	return alloc(pointer, bytesize, 0);
}

ENTRY_BODY(cuMemAllocHost_v2, (void **pointer, size_t bytesize), (pointer, bytesize))
{
	return alloc(pointer, bytesize, 0);
}

ENTRY_BODY(cuMemHostAlloc, (void **pointer, size_t bytesize, unsigned int flags),
	(pointer, bytesize, flags))
{
	return alloc(pointer, bytesize, flags);
}

ENTRY_BODY(cuMemFreeHost, (void *pointer), (pointer))
{
	struct context *context;
	size_t bytes;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!remove_range(pointer, false, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	munmap(pointer, bytes);
	return CUDA_SUCCESS;
}

static CUresult host_register(void *pointer, size_t bytes, unsigned int flags)
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || bytes == 0 || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	return add_range(pointer, bytes, flags, true);
}

ENTRY_BODY(cuMemHostRegister, (void *pointer, size_t bytesize, unsigned int flags),
	(pointer, bytesize, flags))
{
	return host_register(pointer, bytesize, flags);
}

ENTRY_BODY(cuMemHostRegister_v2, (void *pointer, size_t bytesize, unsigned int flags),
	(pointer, bytesize, flags))
{
	return host_register(pointer, bytesize, flags);
}

ENTRY_BODY(cuMemHostUnregister, (void *pointer), (pointer))
{
	struct context *context;
	size_t bytes;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	return remove_range(pointer, true, &bytes) ? CUDA_SUCCESS
						   : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult device_pointer(CUdeviceptr *dptr, void *pointer, unsigned int flags)
{
	struct context *context;
	bool is_known;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	is_known = lookup_host((uintptr_t)pointer);
	pthread_mutex_unlock(&driver.memory_lock);
	if (!is_known)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = (CUdeviceptr)(uintptr_t)pointer;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemHostGetDevicePointer_v2, (CUdeviceptr * dptr, void *pointer, unsigned int flags),
	(dptr, pointer, flags))
{
	return device_pointer(dptr, pointer, flags);
}

ENTRY_BODY(cuMemHostGetDevicePointer, (CUdeviceptr_v1 * dptr, void *pointer, unsigned int flags),
	(dptr, pointer, flags))
{
	/* Addresses of 32 bits: see memory.c. */
	return CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY_BODY(cuMemHostGetFlags, (unsigned int *flags, void *pointer), (flags, pointer))
{
	struct host_range *range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	range = lookup_host((uintptr_t)pointer);
	if (range) {
		*flags = range->flags;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

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
	pthread_mutex_lock(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	host = is_device ? NULL : lookup_host((uintptr_t)dptr);
	if (is_device || host)
		result = get_attribute(data, attribute, dptr, is_device ? &extent : NULL, host);
	pthread_mutex_unlock(&driver.memory_lock);
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
	pthread_mutex_lock(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	host = is_device ? NULL : lookup_host((uintptr_t)dptr);
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
	pthread_mutex_unlock(&driver.memory_lock);
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
	pthread_mutex_lock(&driver.memory_lock);
	is_device = lookup_extent(dptr, &extent);
	pthread_mutex_unlock(&driver.memory_lock);
	return is_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
