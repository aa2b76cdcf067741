/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: the bytes move at once, the time passes in the stream. */
#include "sim/cuda/model/memory/copy.h"

#include <stdint.h>
#include <string.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/fill.h"
#include "sim/cuda/model/memory/host.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/machine/kept.h"

/*
 * Of the bus to the host a good third is taken to be reached, as with memory that is not pinned: 20 of
 * an H200's 63 GB/s [e]. A lane of PCIe moves 1 GB/s in the third generation, twice that in the next.
 */
static uint64_t host_duration(size_t bytes)
{
	int generation = driver.board->pcie_generation;
	uint64_t mbps = UINT64_C(1000) * (uint64_t)driver.board->pcie_width;

	mbps = generation > 3 ? mbps << (generation - 3) : mbps >> (3 - generation);
	mbps = mbps * 5 / 16;
	return bytes * 1000 / (mbps > 0 ? mbps : 1);
}

/* On the device each byte is read and written. */
static uint64_t duration_of(size_t bytes, bool is_host)
{
	return is_host ? host_duration(bytes) : 2 * fill_duration(bytes);
}

static CUresult check(const struct place *place, const struct shape *shape, struct device *device,
	bool *ret_is_host)
{
	size_t bytes = (shape->depth - 1) * place->slice + (shape->height - 1) * place->pitch +
		       shape->width;
	CUresult result;

	if (place->side == SIDE_ARRAY) {
		*ret_is_host = false;
		return CUDA_SUCCESS;
	}
	if (place->side == SIDE_HOST) {
		*ret_is_host = true;
		return place->address != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	if (place->address == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = lookup_use(place->address, bytes, device, ret_is_host);
	if (result != CUDA_SUCCESS || !*ret_is_host || place->side == SIDE_ANY)
		return result;
	/* Host memory given as device memory: right only if the driver knows it. */
	LOCK_SCOPE(&driver.memory_lock);
	if (!host_find((uintptr_t)place->address))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

static void move(const struct place *to, const struct place *from, const struct shape *shape)
{
	for (size_t z = 0; z < shape->depth; z++) {
		for (size_t y = 0; y < shape->height; y++)
			memmove((void *)(uintptr_t)(to->address + z * to->slice + y * to->pitch),
				(const void *)(uintptr_t)(from->address + z * from->slice +
							  y * from->pitch),
				shape->width);
	}
}

CUresult copy_run(const struct copy *copy, struct device *device, uint64_t *ret_duration_ns,
	bool *ret_has_host)
{
	const struct shape *shape = &copy->shape;
	bool is_to_host, is_from_host;
	CUresult result;

	*ret_duration_ns = 0;
	*ret_has_host = false;
	if (shape->width == 0 || shape->height == 0 || shape->depth == 0)
		return CUDA_SUCCESS;
	result = check(&copy->to, shape, device, &is_to_host);
	if (result == CUDA_SUCCESS)
		result = check(&copy->from, shape, device, &is_from_host);
	if (result != CUDA_SUCCESS)
		return result;
	move(&copy->to, &copy->from, shape);
	*ret_has_host = is_to_host || is_from_host;
	*ret_duration_ns = duration_of(shape->width * shape->height * shape->depth, *ret_has_host);
	return CUDA_SUCCESS;
}

/* An end that is an array, whose rows and layers are where it has them. */
static CUresult set_array(
	struct place *place, CUarray array, const struct shape *shape, size_t x, size_t y, size_t z)
{
	uint8_t *content = NULL;
	CUresult result = array_content(array, (const size_t[]){x, y, z},
		(const size_t[]){shape->width, shape->height, shape->depth}, &content,
		&place->pitch, &place->slice);

	place->side = SIDE_ARRAY;
	place->address = (uintptr_t)content;
	return result;
}

/* One end of a copy of two or three dimensions that is not an array. */
static CUresult set_place(struct place *place, CUmemorytype type, const void *host,
	CUdeviceptr device, size_t pitch, size_t rows, size_t x, size_t y, size_t z)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		place->side = SIDE_HOST;
		place->address = (uintptr_t)host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		place->side = SIDE_DEVICE;
		place->address = device;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		place->side = SIDE_ANY;
		place->address = device;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	place->pitch = pitch;
	place->slice = pitch * rows;
	if (place->address != 0)
		place->address += z * place->slice + y * pitch + x;
	return CUDA_SUCCESS;
}

CUresult copy_from_request(const CUDA_MEMCPY3D *request, struct copy *ret_copy)
{
	struct shape *shape = &ret_copy->shape;
	size_t to_pitch, from_pitch, to_rows, from_rows;
	CUresult result;

	if (!request)
		return CUDA_ERROR_INVALID_VALUE;
	*shape = (struct shape){request->WidthInBytes, request->Height, request->Depth};
	to_pitch = request->dstPitch != 0 ? request->dstPitch : shape->width;
	from_pitch = request->srcPitch != 0 ? request->srcPitch : shape->width;
	to_rows = request->dstHeight != 0 ? request->dstHeight : shape->height;
	from_rows = request->srcHeight != 0 ? request->srcHeight : shape->height;
	if (to_pitch < shape->width || from_pitch < shape->width || to_rows < shape->height ||
		from_rows < shape->height)
		return CUDA_ERROR_INVALID_VALUE;
	result = request->dstMemoryType == CU_MEMORYTYPE_ARRAY
			 ? set_array(&ret_copy->to, request->dstArray, shape, request->dstXInBytes,
				   request->dstY, request->dstZ)
			 : set_place(&ret_copy->to, request->dstMemoryType, request->dstHost,
				   request->dstDevice, to_pitch, to_rows, request->dstXInBytes,
				   request->dstY, request->dstZ);
	if (result != CUDA_SUCCESS)
		return result;
	return request->srcMemoryType == CU_MEMORYTYPE_ARRAY
		       ? set_array(&ret_copy->from, request->srcArray, shape, request->srcXInBytes,
				 request->srcY, request->srcZ)
		       : set_place(&ret_copy->from, request->srcMemoryType, request->srcHost,
				 request->srcDevice, from_pitch, from_rows, request->srcXInBytes,
				 request->srcY, request->srcZ);
}
