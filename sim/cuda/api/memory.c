/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of linear and managed memory. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/lookup.h"

static CUresult alloc(struct context *context, size_t bytes, CUdeviceptr *ret_base)
{
	LOCK_SCOPE(&driver.memory_lock);
	return heap_alloc(context, bytes, MACHINE_PLAIN, ret_base);
}

/* For CUDA 2, whose sizes and device pointers have 32 bits: an allocation beyond them is undone. */
static CUresult alloc_low(struct context *context, size_t bytes, CUdeviceptr_v1 *ret_base)
{
	CUdeviceptr base;
	CUresult result = alloc(context, bytes, &base);

	if (result == CUDA_SUCCESS && base > UINT32_MAX) {
		LOCK_SCOPE(&driver.memory_lock);
		lookup_free(base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS)
		*ret_base = (CUdeviceptr_v1)base;
	return result;
}

ENTRY_CALL_CURRENT(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize),
	dptr ? alloc(entry.context, bytesize, dptr) : CUDA_ERROR_INVALID_VALUE)
ENTRY_CALL_OLD(cuMemAlloc, (CUdeviceptr_v1 * dptr, unsigned int bytesize),
	dptr ? alloc_low(entry.context, bytesize, dptr) : CUDA_ERROR_INVALID_VALUE)

ENTRY_CURRENT(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
{
	LOCK_SCOPE(&driver.memory_lock);
	return dptr != 0 ? lookup_free(dptr) : CUDA_SUCCESS;
}

ENTRY_CALL_OLD(cuMemFree, (CUdeviceptr_v1 dptr), cuMemFree_v2_body(entry.context, dptr))

/* The bytes from a row to the next. */
static CUresult find_pitch(
	size_t width, size_t height, unsigned int element_bytes, size_t *ret_pitch)
{
	enum { PITCH_UNIT = 512 }; /* measured on H200 */
	size_t row = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;

	if (width == 0 || height == 0 ||
		(element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (row < width || row > SIZE_MAX / height)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pitch = row;
	return CUDA_SUCCESS;
}

#define ALLOC_PITCH(symbol, entry, pointer, size, alloc)                         \
	entry(symbol,                                                            \
		(pointer * dptr, size * pitch, size width, size height,          \
			unsigned int element_bytes),                             \
		(dptr, pitch, width, height, element_bytes))                     \
	{                                                                        \
		size_t row;                                                      \
		CUresult result = CUDA_ERROR_INVALID_VALUE;                      \
                                                                                 \
		if (dptr && pitch)                                               \
			result = find_pitch(width, height, element_bytes, &row); \
		if (result == CUDA_SUCCESS)                                      \
			result = alloc(context, row * height, dptr);             \
		if (result == CUDA_SUCCESS)                                      \
			*pitch = (size)row;                                      \
		return result;                                                   \
	}
ALLOC_PITCH(cuMemAllocPitch_v2, ENTRY_CURRENT, CUdeviceptr, size_t, alloc)
ALLOC_PITCH(cuMemAllocPitch, ENTRY_OLD, CUdeviceptr_v1, unsigned int, alloc_low)

ENTRY_CURRENT(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags),
	(dptr, bytesize, flags))
{
	if (!dptr || bytesize == 0 ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return heap_alloc_managed(context, bytesize, flags, dptr);
}

#define GET_INFO(symbol, entry, size)                                                        \
	entry(symbol, (size * free_bytes, size * total_bytes), (free_bytes, total_bytes))    \
	{                                                                                    \
		uint64_t bytes = machine_free_bytes(driver.machine, context->device->index); \
                                                                                             \
		if (free_bytes)                                                              \
			*free_bytes = ENTRY_BYTES(size, bytes);                              \
		if (total_bytes)                                                             \
			*total_bytes = ENTRY_BYTES(size, driver.board->total_bytes);         \
		return CUDA_SUCCESS;                                                         \
	}
GET_INFO(cuMemGetInfo_v2, ENTRY_CURRENT, size_t)
GET_INFO(cuMemGetInfo, ENTRY_OLD, unsigned int)

ENTRY_CURRENT(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *size, CUdeviceptr dptr),
	(base, size, dptr))
{
	struct extent extent;

	LOCK_SCOPE(&driver.memory_lock);
	if (!lookup_extent(dptr, &extent))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = extent.base;
	if (size)
		*size = extent.bytes;
	return CUDA_SUCCESS;
}

/* No allocation is found by an address of 32 bits. */
ENTRY_CALL_OLD(cuMemGetAddressRange,
	(CUdeviceptr_v1 * base, unsigned int *size, CUdeviceptr_v1 dptr), CUDA_ERROR_NOT_FOUND)

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
