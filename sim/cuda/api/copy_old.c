/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of CUDA 2: sizes and device pointers have 32 bits. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"

static void widen_2d(const CUDA_MEMCPY2D_v1 *old, CUDA_MEMCPY2D *ret_request)
{
	*ret_request = (CUDA_MEMCPY2D){.srcXInBytes = old->srcXInBytes,
		.srcY = old->srcY,
		.srcMemoryType = old->srcMemoryType,
		.srcHost = old->srcHost,
		.srcDevice = old->srcDevice,
		.srcArray = old->srcArray,
		.srcPitch = old->srcPitch,
		.dstXInBytes = old->dstXInBytes,
		.dstY = old->dstY,
		.dstMemoryType = old->dstMemoryType,
		.dstHost = old->dstHost,
		.dstDevice = old->dstDevice,
		.dstArray = old->dstArray,
		.dstPitch = old->dstPitch,
		.WidthInBytes = old->WidthInBytes,
		.Height = old->Height};
}

static CUresult copy_old_2d(CUstream handle, bool is_waiting, const CUDA_MEMCPY2D_v1 *old)
{
	CUDA_MEMCPY2D request;

	if (!old)
		return CUDA_ERROR_INVALID_VALUE;
	widen_2d(old, &request);
	return submit_copy_2d(handle, false, is_waiting, &request);
}

ENTRY_BODY(cuMemcpy2D, (const CUDA_MEMCPY2D_v1 *request), (request))
{
	return copy_old_2d(NULL, true, request);
}

ENTRY_BODY(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *request), (request))
{
	return copy_old_2d(NULL, true, request);
}

ENTRY_BODY(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1 *request, CUstream stream), (request, stream))
{
	return copy_old_2d(stream, false, request);
}

static void widen_3d(const CUDA_MEMCPY3D_v1 *old, CUDA_MEMCPY3D *ret_request)
{
	*ret_request = (CUDA_MEMCPY3D){.srcXInBytes = old->srcXInBytes,
		.srcY = old->srcY,
		.srcZ = old->srcZ,
		.srcLOD = old->srcLOD,
		.srcMemoryType = old->srcMemoryType,
		.srcHost = old->srcHost,
		.srcDevice = old->srcDevice,
		.srcArray = old->srcArray,
		.srcPitch = old->srcPitch,
		.srcHeight = old->srcHeight,
		.dstXInBytes = old->dstXInBytes,
		.dstY = old->dstY,
		.dstZ = old->dstZ,
		.dstLOD = old->dstLOD,
		.dstMemoryType = old->dstMemoryType,
		.dstHost = old->dstHost,
		.dstDevice = old->dstDevice,
		.dstArray = old->dstArray,
		.dstPitch = old->dstPitch,
		.dstHeight = old->dstHeight,
		.WidthInBytes = old->WidthInBytes,
		.Height = old->Height,
		.Depth = old->Depth};
}

static CUresult copy_old_3d(CUstream handle, bool is_waiting, const CUDA_MEMCPY3D_v1 *old)
{
	CUDA_MEMCPY3D request;

	if (!old)
		return CUDA_ERROR_INVALID_VALUE;
	widen_3d(old, &request);
	return submit_copy_3d(handle, false, is_waiting, &request);
}

ENTRY_BODY(cuMemcpy3D, (const CUDA_MEMCPY3D_v1 *request), (request))
{
	return copy_old_3d(NULL, true, request);
}

ENTRY_BODY(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *request, CUstream stream), (request, stream))
{
	return copy_old_3d(stream, false, request);
}
