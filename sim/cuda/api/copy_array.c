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

/* The parameters of either width: sizes and device pointers have 64 bits or, in CUDA 2, 32. */
#define DTOA(size, pointer) CUarray dst, size dst_offset, pointer src, size count
#define ATOD(size, pointer) pointer dst, CUarray src, size src_offset, size count
#define ATOA(size, pointer) CUarray dst, size dst_offset, CUarray src, size src_offset, size count
#define HTOA(size, pointer) CUarray dst, size dst_offset, const void *src, size count
#define ATOH(size, pointer) void *dst, CUarray src, size src_offset, size count

/* Rows: a call of both widths, its ends, its parameters, its arguments. */
#define ROW(symbol, v2, suffix, ends, params, args)                                            \
	ENTRY_FORMS(symbol##v2, suffix, (params(size_t, CUdeviceptr)), args)                   \
	{                                                                                      \
		return submit_copy_3d(NULL, is_thread, true,                                   \
			&(CUDA_MEMCPY3D){ends.WidthInBytes = count, .Height = 1, .Depth = 1}); \
	}                                                                                      \
	ENTRY_CALL(symbol, (params(unsigned int, CUdeviceptr_v1)),                             \
		symbol##v2##_body(false, ENTRY_UNPACK args))
#define ROW_ASYNC(symbol, v2, suffix, ends, params, args)                                      \
	ENTRY_FORMS(symbol##v2, suffix, (params(size_t, CUdeviceptr), CUstream stream),        \
		(ENTRY_UNPACK args, stream))                                                   \
	{                                                                                      \
		return submit_copy_3d(stream, is_thread, false,                                \
			&(CUDA_MEMCPY3D){ends.WidthInBytes = count, .Height = 1, .Depth = 1}); \
	}                                                                                      \
	ENTRY_CALL(symbol, (params(unsigned int, CUdeviceptr_v1), CUstream stream),            \
		symbol##v2##_body(false, ENTRY_UNPACK args, stream))

ROW(cuMemcpyDtoA, _v2, _ptds, TO_ARRAY FROM_DEVICE, DTOA, (dst, dst_offset, src, count))
ROW(cuMemcpyAtoD, _v2, _ptds, TO_DEVICE FROM_ARRAY, ATOD, (dst, src, src_offset, count))
ROW(cuMemcpyAtoA, _v2, _ptds, TO_ARRAY FROM_ARRAY, ATOA, (dst, dst_offset, src, src_offset, count))
ROW(cuMemcpyHtoA, _v2, _ptds, TO_ARRAY FROM_HOST, HTOA, (dst, dst_offset, src, count))
ROW(cuMemcpyAtoH, _v2, _ptds, TO_HOST FROM_ARRAY, ATOH, (dst, src, src_offset, count))
ROW_ASYNC(cuMemcpyHtoAAsync, _v2, _ptsz, TO_ARRAY FROM_HOST, HTOA, (dst, dst_offset, src, count))
ROW_ASYNC(cuMemcpyAtoHAsync, _v2, _ptsz, TO_HOST FROM_ARRAY, ATOH, (dst, src, src_offset, count))
