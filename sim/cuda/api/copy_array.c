/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a row between an array and something else. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/submit.h"

/* The ends of a row, by the names of the parameters below. */
#define TO_ARRAY    .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = dst, .dstXInBytes = dst_offset,
#define TO_DEVICE   .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst,
#define TO_HOST	    .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = dst,
#define FROM_ARRAY  .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = src, .srcXInBytes = src_offset,
#define FROM_DEVICE .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src,
#define FROM_HOST   .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = src,

/* Rows: a call, its parameters and those of CUDA 2, whose device pointers and sizes have 32 bits. */
#define ROW(kind, ends, params, old_params, args)                                              \
	ENTRY_FORMS(cuMemcpy##kind##_v2, _ptds, params, args)                                  \
	{                                                                                      \
		return submit_copy_3d(NULL, is_thread, true,                                   \
			&(CUDA_MEMCPY3D){ends.WidthInBytes = count, .Height = 1, .Depth = 1}); \
	}                                                                                      \
	ENTRY_CALL(cuMemcpy##kind, old_params, cuMemcpy##kind##_v2_body(false, ENTRY_UNPACK args))
#define ROW_ASYNC(kind, ends, params, old_params, args)                                        \
	ENTRY_FORMS(cuMemcpy##kind##Async_v2, _ptsz, params, args)                             \
	{                                                                                      \
		return submit_copy_3d(stream, is_thread, false,                                \
			&(CUDA_MEMCPY3D){ends.WidthInBytes = count, .Height = 1, .Depth = 1}); \
	}                                                                                      \
	ENTRY_CALL(cuMemcpy##kind##Async, old_params,                                          \
		cuMemcpy##kind##Async_v2_body(false, ENTRY_UNPACK args))

ROW(DtoA, TO_ARRAY FROM_DEVICE, (CUarray dst, size_t dst_offset, CUdeviceptr src, size_t count),
	(CUarray dst, unsigned int dst_offset, CUdeviceptr_v1 src, unsigned int count),
	(dst, dst_offset, src, count))
ROW(AtoD, TO_DEVICE FROM_ARRAY, (CUdeviceptr dst, CUarray src, size_t src_offset, size_t count),
	(CUdeviceptr_v1 dst, CUarray src, unsigned int src_offset, unsigned int count),
	(dst, src, src_offset, count))
ROW(AtoA, TO_ARRAY FROM_ARRAY,
	(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t count),
	(CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset,
		unsigned int count),
	(dst, dst_offset, src, src_offset, count))
ROW(HtoA, TO_ARRAY FROM_HOST, (CUarray dst, size_t dst_offset, const void *src, size_t count),
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int count),
	(dst, dst_offset, src, count))
ROW(AtoH, TO_HOST FROM_ARRAY, (void *dst, CUarray src, size_t src_offset, size_t count),
	(void *dst, CUarray src, unsigned int src_offset, unsigned int count),
	(dst, src, src_offset, count))
ROW_ASYNC(HtoA, TO_ARRAY FROM_HOST,
	(CUarray dst, size_t dst_offset, const void *src, size_t count, CUstream stream),
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int count,
		CUstream stream),
	(dst, dst_offset, src, count, stream))
ROW_ASYNC(AtoH, TO_HOST FROM_ARRAY,
	(void *dst, CUarray src, size_t src_offset, size_t count, CUstream stream),
	(void *dst, CUarray src, unsigned int src_offset, unsigned int count, CUstream stream),
	(dst, src, src_offset, count, stream))
