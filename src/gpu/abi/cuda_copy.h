/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to and from arrays, batches of copies and of prefetches, and decompression: types and
 * function types. Included by gpu/abi/cuda.h only.
 */
#pragma once

typedef enum CUmemcpySrcAccessOrder_enum {
	CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
} CUmemcpySrcAccessOrder;

typedef struct CUmemcpyAttributes_st {
	CUmemcpySrcAccessOrder srcAccessOrder;
	CUmemLocation srcLocHint;
	CUmemLocation dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;
_Static_assert(sizeof(CUmemcpyAttributes) == 24, "CUmemcpyAttributes");

typedef struct CUoffset3D_st {
	size_t x;
	size_t y;
	size_t z;
} CUoffset3D;

typedef struct CUextent3D_st {
	size_t width;
	size_t height;
	size_t depth;
} CUextent3D;

typedef enum CUmemcpy3DOperandType_enum {
	CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
	CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
} CUmemcpy3DOperandType;

typedef struct CUmemcpy3DOperand_st {
	CUmemcpy3DOperandType type;
	union {
		struct {
			CUdeviceptr ptr;
			size_t rowLength;   /* in elements */
			size_t layerHeight; /* in elements */
			CUmemLocation locHint;
		} ptr;
		struct {
			CUarray array;
			CUoffset3D offset;
		} array;
	} op;
} CUmemcpy3DOperand;
_Static_assert(sizeof(CUmemcpy3DOperand) == 40, "CUmemcpy3DOperand");

typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
	CUmemcpy3DOperand src;
	CUmemcpy3DOperand dst;
	CUextent3D extent; /* in elements, which are bytes where neither side is an array */
	CUmemcpySrcAccessOrder srcAccessOrder;
	unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA_MEMCPY3D_BATCH_OP");

typedef enum CUmemDecompressAlgorithm_enum {
	CU_MEM_DECOMPRESS_UNSUPPORTED = 0,
	CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE = 1,
	CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY = 2,
	CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4,
} CUmemDecompressAlgorithm;

typedef struct CUmemDecompressParams_st {
	size_t srcNumBytes;
	size_t dstNumBytes;
	cuuint32_t *dstActBytes;
	const void *src;
	void *dst;
	CUmemDecompressAlgorithm algo;
	unsigned char padding[20];
} CUmemDecompressParams;
_Static_assert(sizeof(CUmemDecompressParams) == 64, "CUmemDecompressParams");

/* Arrays, from a place in bytes; sizes and device pointers of the first forms have 32 bits. */
typedef CUresult cuMemcpyDtoA_fn(
	CUarray dst, unsigned int dst_offset, CUdeviceptr_v1 src, unsigned int count);
typedef CUresult cuMemcpyDtoA_v2_fn(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t count);
typedef cuMemcpyDtoA_v2_fn cuMemcpyDtoA_v2_ptds_fn;
typedef CUresult cuMemcpyAtoD_fn(
	CUdeviceptr_v1 dst, CUarray src, unsigned int src_offset, unsigned int count);
typedef CUresult cuMemcpyAtoD_v2_fn(CUdeviceptr dst, CUarray src, size_t src_offset, size_t count);
typedef cuMemcpyAtoD_v2_fn cuMemcpyAtoD_v2_ptds_fn;
typedef CUresult cuMemcpyHtoA_fn(
	CUarray dst, unsigned int dst_offset, const void *src, unsigned int count);
typedef CUresult cuMemcpyHtoA_v2_fn(CUarray dst, size_t dst_offset, const void *src, size_t count);
typedef cuMemcpyHtoA_v2_fn cuMemcpyHtoA_v2_ptds_fn;
typedef CUresult cuMemcpyHtoAAsync_fn(
	CUarray dst, unsigned int dst_offset, const void *src, unsigned int count, CUstream stream);
typedef CUresult cuMemcpyHtoAAsync_v2_fn(
	CUarray dst, size_t dst_offset, const void *src, size_t count, CUstream stream);
typedef cuMemcpyHtoAAsync_v2_fn cuMemcpyHtoAAsync_v2_ptsz_fn;
typedef CUresult cuMemcpyAtoH_fn(
	void *dst, CUarray src, unsigned int src_offset, unsigned int count);
typedef CUresult cuMemcpyAtoH_v2_fn(void *dst, CUarray src, size_t src_offset, size_t count);
typedef cuMemcpyAtoH_v2_fn cuMemcpyAtoH_v2_ptds_fn;
typedef CUresult cuMemcpyAtoHAsync_fn(
	void *dst, CUarray src, unsigned int src_offset, unsigned int count, CUstream stream);
typedef CUresult cuMemcpyAtoHAsync_v2_fn(
	void *dst, CUarray src, size_t src_offset, size_t count, CUstream stream);
typedef cuMemcpyAtoHAsync_v2_fn cuMemcpyAtoHAsync_v2_ptsz_fn;
typedef CUresult cuMemcpyAtoA_fn(CUarray dst, unsigned int dst_offset, CUarray src,
	unsigned int src_offset, unsigned int count);
typedef CUresult cuMemcpyAtoA_v2_fn(
	CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t count);
typedef cuMemcpyAtoA_v2_fn cuMemcpyAtoA_v2_ptds_fn;

/* Batches. Those of CUDA 12 say which of the copies failed. */
typedef CUresult cuMemcpyBatchAsync_fn(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attributes, size_t *attribute_starts,
	size_t attribute_count, size_t *failed, CUstream stream);
typedef cuMemcpyBatchAsync_fn cuMemcpyBatchAsync_ptsz_fn;
typedef CUresult cuMemcpyBatchAsync_v2_fn(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attributes, size_t *attribute_starts,
	size_t attribute_count, CUstream stream);
typedef cuMemcpyBatchAsync_v2_fn cuMemcpyBatchAsync_v2_ptsz_fn;
typedef CUresult cuMemcpy3DBatchAsync_fn(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
	unsigned long long flags, CUstream stream);
typedef cuMemcpy3DBatchAsync_fn cuMemcpy3DBatchAsync_ptsz_fn;
typedef CUresult cuMemcpy3DBatchAsync_v2_fn(
	size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream);
typedef cuMemcpy3DBatchAsync_v2_fn cuMemcpy3DBatchAsync_v2_ptsz_fn;
typedef CUresult cuMemPrefetchBatchAsync_fn(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	CUmemLocation *locations, size_t *location_starts, size_t location_count,
	unsigned long long flags, CUstream stream);
typedef cuMemPrefetchBatchAsync_fn cuMemPrefetchBatchAsync_ptsz_fn;
typedef cuMemPrefetchBatchAsync_fn cuMemDiscardAndPrefetchBatchAsync_fn;
typedef cuMemPrefetchBatchAsync_fn cuMemDiscardAndPrefetchBatchAsync_ptsz_fn;
typedef CUresult cuMemBatchDecompressAsync_fn(CUmemDecompressParams *list, size_t count,
	unsigned int flags, size_t *failed, CUstream stream);
typedef cuMemBatchDecompressAsync_fn cuMemBatchDecompressAsync_ptsz_fn;
