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

ENTRY_FORMS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *request), (request))
{
	return submit_copy_2d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *request), (request))
{
	return submit_copy_2d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *request, CUstream stream),
	(request, stream))
{
	return submit_copy_2d(stream, is_thread, false, request);
}

ENTRY_FORMS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *request), (request))
{
	return submit_copy_3d(NULL, is_thread, true, request);
}

ENTRY_FORMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *request, CUstream stream),
	(request, stream))
{
	return submit_copy_3d(stream, is_thread, false, request);
}

/* The two structures differ only in what they call the two pointers that we do not read. */
_Static_assert(offsetof(CUDA_MEMCPY3D, dstPitch) == offsetof(CUDA_MEMCPY3D_PEER, dstPitch), "");

ENTRY_FORMS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *request), (request))
{
	return submit_copy_3d(NULL, is_thread, true, (const CUDA_MEMCPY3D *)request);
}

ENTRY_FORMS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *request, CUstream stream),
	(request, stream))
{
	return submit_copy_3d(stream, is_thread, false, (const CUDA_MEMCPY3D *)request);
}
