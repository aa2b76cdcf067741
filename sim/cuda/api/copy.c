/* SPDX-License-Identifier: Apache-2.0 */
/* Copies. */
#include <stddef.h>
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

/* The fields that requests of two dimensions and of three share, old and new. */
#define FIELDS_2D(FIELD)     \
	FIELD(srcXInBytes)   \
	FIELD(srcY)          \
	FIELD(srcMemoryType) \
	FIELD(srcHost)       \
	FIELD(srcDevice)     \
	FIELD(srcArray)      \
	FIELD(srcPitch)      \
	FIELD(dstXInBytes)   \
	FIELD(dstY)          \
	FIELD(dstMemoryType) \
	FIELD(dstHost)       \
	FIELD(dstDevice)     \
	FIELD(dstArray)      \
	FIELD(dstPitch)      \
	FIELD(WidthInBytes)  \
	FIELD(Height)
#define FIELDS_3D(FIELD) \
	FIELDS_2D(FIELD) \
	FIELD(srcZ)      \
	FIELD(srcLOD)    \
	FIELD(srcHeight) \
	FIELD(dstZ)      \
	FIELD(dstLOD)    \
	FIELD(dstHeight) \
	FIELD(Depth)
#define WIDEN_FIELD(name) .name = request->name,
#define WIDEN_2D	  ((CUDA_MEMCPY3D){FIELDS_2D(WIDEN_FIELD).Depth = 1})
#define WIDEN_3D	  ((CUDA_MEMCPY3D){FIELDS_3D(WIDEN_FIELD)})

/* The two structures differ only in what they call the two pointers that we do not read. */
_Static_assert(offsetof(CUDA_MEMCPY3D, dstPitch) == offsetof(CUDA_MEMCPY3D_PEER, dstPitch), "");
#define SAME (*(const CUDA_MEMCPY3D *)request)

/* Rows: a call that waits and one that does not, the structure, how it becomes one of three dimensions. */
#define COPY(symbol, type, wide)                                              \
	ENTRY_FORMS(symbol, _ptds, (const type *request), (request))          \
	{                                                                     \
		return request ? submit_copy_3d(NULL, is_thread, true, &wide) \
			       : CUDA_ERROR_INVALID_VALUE;                    \
	}
#define COPY_ASYNC(symbol, type, wide)                                                        \
	ENTRY_FORMS(symbol, _ptsz, (const type *request, CUstream stream), (request, stream)) \
	{                                                                                     \
		return request ? submit_copy_3d(stream, is_thread, false, &wide)              \
			       : CUDA_ERROR_INVALID_VALUE;                                    \
	}
#define COPY_OLD(symbol, type, wide)                                      \
	ENTRY_BODY(symbol, (const type *request), (request))              \
	{                                                                 \
		return request ? submit_copy_3d(NULL, false, true, &wide) \
			       : CUDA_ERROR_INVALID_VALUE;                \
	}
#define COPY_OLD_ASYNC(symbol, type, wide)                                            \
	ENTRY_BODY(symbol, (const type *request, CUstream stream), (request, stream)) \
	{                                                                             \
		return request ? submit_copy_3d(stream, false, false, &wide)          \
			       : CUDA_ERROR_INVALID_VALUE;                            \
	}

COPY(cuMemcpy2D_v2, CUDA_MEMCPY2D, WIDEN_2D)
COPY(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, WIDEN_2D)
COPY_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, WIDEN_2D)
COPY(cuMemcpy3D_v2, CUDA_MEMCPY3D, SAME)
COPY_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, SAME)
COPY(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, SAME)
COPY_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, SAME)
COPY_OLD(cuMemcpy2D, CUDA_MEMCPY2D_v1, WIDEN_2D)
COPY_OLD(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, WIDEN_2D)
COPY_OLD_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, WIDEN_2D)
COPY_OLD(cuMemcpy3D, CUDA_MEMCPY3D_v1, WIDEN_3D)
COPY_OLD_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, WIDEN_3D)
