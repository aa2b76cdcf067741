/* SPDX-License-Identifier: Apache-2.0 */
/* Copies. */
#include <stdint.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"
#include "sim/cuda/model/memory/copy.h"

static CUresult copy_flat(CUstream handle, bool is_thread, bool is_waiting, CUdeviceptr dst,
	enum side dst_side, CUdeviceptr src, enum side src_side, size_t bytes)
{
	struct copy copy = {.to = {.address = dst, .side = dst_side},
		.from = {.address = src, .side = src_side},
		.shape = {.width = bytes, .height = 1, .depth = 1}};

	return submit_copy(handle, is_thread, is_waiting, &copy);
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

/* Four calls of a kind, the last two of CUDA 2, whose device pointers and sizes have 32 bits. */
#define FLAT(kind, to, old_to, to_side, from, old_from, from_side)                               \
	ENTRY_FORMS(                                                                             \
		cuMemcpy##kind##_v2, _ptds, (to dst, from src, size_t count), (dst, src, count)) \
	{                                                                                        \
		return copy_flat(NULL, is_thread, true, (uintptr_t)dst, to_side, (uintptr_t)src, \
			from_side, count);                                                       \
	}                                                                                        \
	ENTRY_FORMS(cuMemcpy##kind##Async_v2, _ptsz,                                             \
		(to dst, from src, size_t count, CUstream stream), (dst, src, count, stream))    \
	{                                                                                        \
		return copy_flat(stream, is_thread, false, (uintptr_t)dst, to_side,              \
			(uintptr_t)src, from_side, count);                                       \
	}                                                                                        \
	ENTRY_CALL(cuMemcpy##kind, (old_to dst, old_from src, unsigned int count),               \
		cuMemcpy##kind##_v2_body(false, dst, src, count))                                \
	ENTRY_CALL(cuMemcpy##kind##Async,                                                        \
		(old_to dst, old_from src, unsigned int count, CUstream stream),                 \
		cuMemcpy##kind##Async_v2_body(false, dst, src, count, stream))

FLAT(HtoD, CUdeviceptr, CUdeviceptr_v1, SIDE_DEVICE, const void *, const void *, SIDE_HOST)
FLAT(DtoH, void *, void *, SIDE_HOST, CUdeviceptr, CUdeviceptr_v1, SIDE_DEVICE)
FLAT(DtoD, CUdeviceptr, CUdeviceptr_v1, SIDE_DEVICE, CUdeviceptr, CUdeviceptr_v1, SIDE_DEVICE)

/* A request of either width, and of two dimensions or three, as one of three. */
#define WIDEN(field) .field = request->field
#define WIDEN_SIDE(side)                                                                   \
	WIDEN(side##XInBytes), WIDEN(side##Y), WIDEN(side##MemoryType), WIDEN(side##Host), \
		WIDEN(side##Device), WIDEN(side##Array), WIDEN(side##Pitch)
#define WIDEN_LAYERS(side) WIDEN(side##Z), WIDEN(side##LOD), WIDEN(side##Height)
#define WIDEN_2D          \
	((CUDA_MEMCPY3D){ \
		WIDEN_SIDE(src), WIDEN_SIDE(dst), WIDEN(WidthInBytes), WIDEN(Height), .Depth = 1})
#define WIDEN_3D                                                                                 \
	((CUDA_MEMCPY3D){WIDEN_SIDE(src), WIDEN_LAYERS(src), WIDEN_SIDE(dst), WIDEN_LAYERS(dst), \
		WIDEN(WidthInBytes), WIDEN(Height), WIDEN(Depth)})
#define COPY_3D(stream, is_thread, is_waiting, wide) \
	(request ? submit_copy_3d(stream, is_thread, is_waiting, &wide) : CUDA_ERROR_INVALID_VALUE)

/* Rows: a call that waits, the structure, how it becomes one of three dimensions; then one that does not wait. */
#define COPY(symbol, suffix, type, wide)                              \
	ENTRY_FORMS(symbol, suffix, (const type *request), (request)) \
	{                                                             \
		return COPY_3D(NULL, is_thread, true, wide);          \
	}
#define COPY_ASYNC(symbol, suffix, type, wide)                                                 \
	ENTRY_FORMS(symbol, suffix, (const type *request, CUstream stream), (request, stream)) \
	{                                                                                      \
		return COPY_3D(stream, is_thread, false, wide);                                \
	}

/* The same for today's symbol##v2 and for the one of CUDA 2. */
#define COPY_WIDTHS(symbol, v2, suffix, type, wide) \
	COPY(symbol##v2, suffix, type, wide)        \
	ENTRY_CALL(symbol, (const type##_v1 *request), COPY_3D(NULL, false, true, wide))
#define COPY_WIDTHS_ASYNC(symbol, v2, suffix, type, wide)               \
	COPY_ASYNC(symbol##v2, suffix, type, wide)                      \
	ENTRY_CALL(symbol, (const type##_v1 *request, CUstream stream), \
		COPY_3D(stream, false, false, wide))

COPY_WIDTHS(cuMemcpy2D, _v2, _ptds, CUDA_MEMCPY2D, WIDEN_2D)
COPY_WIDTHS(cuMemcpy2DUnaligned, _v2, _ptds, CUDA_MEMCPY2D, WIDEN_2D)
COPY_WIDTHS_ASYNC(cuMemcpy2DAsync, _v2, _ptsz, CUDA_MEMCPY2D, WIDEN_2D)
COPY_WIDTHS(cuMemcpy3D, _v2, _ptds, CUDA_MEMCPY3D, WIDEN_3D)
COPY_WIDTHS_ASYNC(cuMemcpy3DAsync, _v2, _ptsz, CUDA_MEMCPY3D, WIDEN_3D)
COPY(cuMemcpy3DPeer, _ptds, CUDA_MEMCPY3D_PEER, WIDEN_3D)
COPY_ASYNC(cuMemcpy3DPeerAsync, _ptsz, CUDA_MEMCPY3D_PEER, WIDEN_3D)
