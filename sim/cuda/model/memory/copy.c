/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: the bytes move at once, the time passes in the stream. */
#include <stdint.h>
#include <string.h>

#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/memory/lookup.h"

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

uint64_t copy_fill_duration(size_t bytes)
{
	/* Both edges of the clock; H200: 6016 bits at 3201 MHz are 4.8 TB/s. */
	uint64_t mbps = (uint64_t)driver.board->memory_bus_bits / 8 *
			(uint64_t)driver.board->clock_memory_mhz * 2;

	return (uint64_t)((double)bytes * 1000 / (double)mbps);
}

/* On the device each byte is read and written. */
static uint64_t duration_of(size_t bytes, bool is_host)
{
	return is_host ? host_duration(bytes) : 2 * copy_fill_duration(bytes);
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
	pthread_mutex_lock(&driver.memory_lock);
	if (!lookup_host((uintptr_t)place->address))
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver.memory_lock);
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

/*
 * Copies in a stream. With is_waiting the call returns when the copy would be done, unless it never
 * leaves the device: such copies are asynchronous in the real driver too.
 */
static CUresult copy(CUstream handle, bool is_thread, bool is_waiting, const struct place *to,
	const struct place *from, const struct shape *shape)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = {*to, *from, *shape}};
	struct context *context;
	struct stream *stream;
	uint64_t duration_ns, end;
	bool has_host;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (capture_is_on(stream))
		return capture_add(stream, &work);
	result = copy_run(&work.copy, context->device, &duration_ns, &has_host);
	if (result != CUDA_SUCCESS)
		return result;
	end = timeline_add(stream, duration_ns, !has_host);
	if (is_waiting && has_host)
		timeline_sleep_until(context, end);
	return CUDA_SUCCESS;
}

static CUresult copy_flat(CUstream handle, bool is_thread, bool is_waiting, CUdeviceptr dst,
	enum side dst_side, CUdeviceptr src, enum side src_side, size_t bytes)
{
	struct place to = {.address = dst, .side = dst_side};
	struct place from = {.address = src, .side = src_side};
	struct shape shape = {.width = bytes, .height = 1, .depth = 1};

	return copy(handle, is_thread, is_waiting, &to, &from, &shape);
}

ENTRY_FORMS(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	return copy_flat(NULL, is_thread, true, dst, SIDE_ANY, src, SIDE_ANY, count);
}

ENTRY_FORMS(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(stream, is_thread, false, dst, SIDE_ANY, src, SIDE_ANY, count);
}

ENTRY_FORMS(cuMemcpyPeer, _ptds,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t count),
	(dst, dst_context, src, src_context, count))
{
	return copy_flat(NULL, is_thread, true, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

ENTRY_FORMS(cuMemcpyPeerAsync, _ptsz,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t count, CUstream stream),
	(dst, dst_context, src, src_context, count, stream))
{
	return copy_flat(stream, is_thread, false, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

ENTRY_FORMS(
	cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t count), (dst, src, count))
{
	return copy_flat(NULL, is_thread, true, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, count);
}

ENTRY_FORMS(cuMemcpyHtoDAsync_v2, _ptsz,
	(CUdeviceptr dst, const void *src, size_t count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(
		stream, is_thread, false, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, count);
}

ENTRY_FORMS(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	return copy_flat(NULL, is_thread, true, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, count);
}

ENTRY_FORMS(cuMemcpyDtoHAsync_v2, _ptsz,
	(void *dst, CUdeviceptr src, size_t count, CUstream stream), (dst, src, count, stream))
{
	return copy_flat(
		stream, is_thread, false, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, count);
}

ENTRY_FORMS(
	cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t count), (dst, src, count))
{
	return copy_flat(NULL, is_thread, true, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

ENTRY_FORMS(cuMemcpyDtoDAsync_v2, _ptsz,
	(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(stream, is_thread, false, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

/* The interfaces of CUDA 2.0: 32-bit device pointers, which no simulated memory has. */
ENTRY_BODY(
	cuMemcpyHtoD, (CUdeviceptr_v1 dst, const void *src, unsigned int count), (dst, src, count))
{
	return copy_flat(NULL, false, true, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, count);
}

ENTRY_BODY(cuMemcpyHtoDAsync,
	(CUdeviceptr_v1 dst, const void *src, unsigned int count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(stream, false, false, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, count);
}

ENTRY_BODY(cuMemcpyDtoH, (void *dst, CUdeviceptr_v1 src, unsigned int count), (dst, src, count))
{
	return copy_flat(NULL, false, true, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, count);
}

ENTRY_BODY(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr_v1 src, unsigned int count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(stream, false, false, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, count);
}

ENTRY_BODY(cuMemcpyDtoD, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int count),
	(dst, src, count))
{
	return copy_flat(NULL, false, true, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

ENTRY_BODY(cuMemcpyDtoDAsync,
	(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int count, CUstream stream),
	(dst, src, count, stream))
{
	return copy_flat(stream, false, false, dst, SIDE_DEVICE, src, SIDE_DEVICE, count);
}

/* An end that is an array, whose rows and layers are where it has them. */
static CUresult set_array(
	struct place *place, CUarray array, const struct shape *shape, size_t x, size_t y, size_t z)
{
	uint8_t *content = NULL;
	CUresult result;

	pthread_mutex_lock(&driver.memory_lock);
	result = array_content(array, (const size_t[]){x, y, z},
		(const size_t[]){shape->width, shape->height, shape->depth}, &content,
		&place->pitch, &place->slice);
	pthread_mutex_unlock(&driver.memory_lock);
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

CUresult copy_2d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY2D *request)
{
	struct place to, from;
	struct shape shape;
	size_t to_pitch, from_pitch;
	CUresult result;

	if (!request)
		return CUDA_ERROR_INVALID_VALUE;
	shape = (struct shape){request->WidthInBytes, request->Height, 1};
	to_pitch = request->dstPitch != 0 ? request->dstPitch : shape.width;
	from_pitch = request->srcPitch != 0 ? request->srcPitch : shape.width;
	if (to_pitch < shape.width || from_pitch < shape.width)
		return CUDA_ERROR_INVALID_VALUE;
	result = request->dstMemoryType == CU_MEMORYTYPE_ARRAY
			 ? set_array(&to, request->dstArray, &shape, request->dstXInBytes,
				   request->dstY, 0)
			 : set_place(&to, request->dstMemoryType, request->dstHost,
				   request->dstDevice, to_pitch, 0, request->dstXInBytes,
				   request->dstY, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = request->srcMemoryType == CU_MEMORYTYPE_ARRAY
			 ? set_array(&from, request->srcArray, &shape, request->srcXInBytes,
				   request->srcY, 0)
			 : set_place(&from, request->srcMemoryType, request->srcHost,
				   request->srcDevice, from_pitch, 0, request->srcXInBytes,
				   request->srcY, 0);
	return result == CUDA_SUCCESS ? copy(handle, is_thread, is_waiting, &to, &from, &shape)
				      : result;
}

ENTRY_FORMS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *request), (request))
{
	return copy_2d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *request), (request))
{
	return copy_2d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *request, CUstream stream),
	(request, stream))
{
	return copy_2d(stream, is_thread, false, request);
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

CUresult copy_3d(CUstream handle, bool is_thread, bool is_waiting, const CUDA_MEMCPY3D *request)
{
	struct copy wanted;
	CUresult result = copy_from_request(request, &wanted);

	return result == CUDA_SUCCESS ? copy(handle, is_thread, is_waiting, &wanted.to,
						&wanted.from, &wanted.shape)
				      : result;
}

ENTRY_FORMS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *request), (request))
{
	return copy_3d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *request, CUstream stream),
	(request, stream))
{
	return copy_3d(stream, is_thread, false, request);
}

/* The two structures differ only in what they call the two pointers that we do not read. */
_Static_assert(offsetof(CUDA_MEMCPY3D, dstPitch) == offsetof(CUDA_MEMCPY3D_PEER, dstPitch), "");

ENTRY_FORMS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *request), (request))
{
	return copy_3d(NULL, is_thread, true, (const CUDA_MEMCPY3D *)request);
}

ENTRY_FORMS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *request, CUstream stream),
	(request, stream))
{
	return copy_3d(stream, is_thread, false, (const CUDA_MEMCPY3D *)request);
}
