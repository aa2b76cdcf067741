/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of linear and managed memory. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/lookup.h"

static CUresult alloc(size_t bytes, CUdeviceptr *ret_base)
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	return heap_alloc(context, bytes, MACHINE_PLAIN, ret_base);
}

static CUresult release(CUdeviceptr base)
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS || base == 0)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	return lookup_free(base);
}

ENTRY_BODY(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize), (dptr, bytesize))
{
	struct context *context;

	if (!dptr) {
		CUresult result = context_current(&context);

		return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
	}
	return alloc(bytesize, dptr);
}

ENTRY_BODY(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
{
	return release(dptr);
}

static CUresult alloc_pitch(
	CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element_bytes)
{
	enum { PITCH_UNIT = 512 }; /* measured on H200 */
	size_t row = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
	CUresult result;

	if (!dptr || !pitch || width == 0 || height == 0 ||
		(element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (row < width || row > SIZE_MAX / height)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = alloc(row * height, dptr);
	if (result == CUDA_SUCCESS)
		*pitch = row;
	return result;
}

ENTRY_BODY(cuMemAllocPitch_v2,
	(CUdeviceptr * dptr, size_t *pitch, size_t width, size_t height,
		unsigned int element_bytes),
	(dptr, pitch, width, height, element_bytes))
{
	return alloc_pitch(dptr, pitch, width, height, element_bytes);
}

ENTRY_CURRENT(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags),
	(dptr, bytesize, flags))
{
	if (!dptr || bytesize == 0 ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return heap_alloc_managed(context, bytesize, flags, dptr);
}

ENTRY_CURRENT(
	cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes), (free_bytes, total_bytes))
{
	if (free_bytes)
		*free_bytes = machine_free_bytes(driver.machine, context->device->index);
	if (total_bytes)
		*total_bytes = driver.board->total_bytes;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr dptr),
	(base, size, dptr))
{
	struct context *context;
	struct extent extent;
	CUresult result = context_current(&context);
	bool is_found;

	if (result != CUDA_SUCCESS)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	is_found = lookup_extent(dptr, &extent);
	if (!is_found)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = extent.base;
	if (size)
		*size = extent.bytes;
	return CUDA_SUCCESS;
}

/*
 * The interfaces of CUDA 2.0 have device pointers of 32 bits and need a context of their version,
 * made by the first cuCtxCreate.
 */
static CUresult check_old(struct context **ret_context)
{
	CUresult result = context_current(ret_context);

	if (result == CUDA_SUCCESS && !context_is_old(*ret_context))
		result = CUDA_ERROR_INVALID_CONTEXT;
	return result;
}

/* A success that does not fit is undone. */
static CUresult narrow(CUdeviceptr base, CUdeviceptr_v1 *ret_base)
{
	if (base > UINT32_MAX) {
		release(base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_base = (CUdeviceptr_v1)base;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemAlloc, (CUdeviceptr_v1 * dptr, unsigned int bytesize), (dptr, bytesize))
{
	struct context *context;
	CUdeviceptr base = 0;
	CUresult result = check_old(&context);

	if (result == CUDA_SUCCESS && !dptr)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = alloc(bytesize, &base);
	return result == CUDA_SUCCESS ? narrow(base, dptr) : result;
}

ENTRY_BODY(cuMemAllocPitch,
	(CUdeviceptr_v1 * dptr, unsigned int *pitch, unsigned int width, unsigned int height,
		unsigned int element_bytes),
	(dptr, pitch, width, height, element_bytes))
{
	struct context *context;
	CUdeviceptr base = 0;
	size_t row = 0;
	CUresult result = check_old(&context);

	if (result == CUDA_SUCCESS && (!dptr || !pitch))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = alloc_pitch(&base, &row, width, height, element_bytes);
	if (result == CUDA_SUCCESS)
		result = narrow(base, dptr);
	if (result == CUDA_SUCCESS)
		*pitch = (unsigned int)row;
	return result;
}

ENTRY_BODY(cuMemFree, (CUdeviceptr_v1 dptr), (dptr))
{
	struct context *context;
	CUresult result = check_old(&context);

	return result == CUDA_SUCCESS ? release(dptr) : result;
}

static unsigned int clamp(uint64_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

ENTRY_BODY(cuMemGetInfo, (unsigned int *free_bytes, unsigned int *total_bytes),
	(free_bytes, total_bytes))
{
	struct context *context;
	CUresult result = check_old(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (free_bytes)
		*free_bytes = clamp(machine_free_bytes(driver.machine, context->device->index));
	if (total_bytes)
		*total_bytes = clamp(driver.board->total_bytes);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemGetAddressRange, (CUdeviceptr_v1 * base, unsigned int *size, CUdeviceptr_v1 dptr),
	(base, size, dptr))
{
	struct context *context;
	CUresult result = check_old(&context);

	return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}

/*
 * Advice on where the memory is best is followed for whole allocations; other advice changes nothing
 * here, but is checked.
 */
static CUresult advise(CUdeviceptr dptr, size_t count, CUmem_advise advice, bool is_host)
{
	struct extent extent;
	bool is_managed;

	if (count == 0 || advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
		advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	is_managed = lookup_extent(dptr, &extent) && extent.is_managed;
	if (is_managed && (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
				  advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION))
		extent.plain->stays_on_host =
			is_host && advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
	return is_managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY_BODY(cuMemAdvise, (CUdeviceptr dptr, size_t count, CUmem_advise advice, CUdevice device),
	(dptr, count, advice, device))
{
	if (device != CU_DEVICE_CPU && !driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return advise(dptr, count, advice, device == CU_DEVICE_CPU);
}

ENTRY_BODY(cuMemAdvise_v2,
	(CUdeviceptr dptr, size_t count, CUmem_advise advice, CUmemLocation location),
	(dptr, count, advice, location))
{
	bool is_host = location.type != CU_MEM_LOCATION_TYPE_DEVICE;

	if (!is_host && !driver_device(location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return advise(dptr, count, advice, is_host);
}
