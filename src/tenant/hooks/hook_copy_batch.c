/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: batches of copies, from and to anywhere, and of decompressions. */
#include "tenant/hooks/bulk.h"

METERED(cuMemcpyBatchAsync, BULK_COPY_BATCH, stream, bulk_sum(sizes, count),
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *attribute_starts, size_t attribute_count,
		size_t *failed, CUstream stream),
	(dsts, srcs, sizes, count, attributes, attribute_starts, attribute_count, failed, stream))
METERED(cuMemcpyBatchAsync_ptsz, BULK_COPY_BATCH, bulk_stream(stream), bulk_sum(sizes, count),
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *attribute_starts, size_t attribute_count,
		size_t *failed, CUstream stream),
	(dsts, srcs, sizes, count, attributes, attribute_starts, attribute_count, failed, stream))
METERED(cuMemcpyBatchAsync_v2, BULK_COPY_BATCH, stream, bulk_sum(sizes, count),
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *attribute_starts, size_t attribute_count,
		CUstream stream),
	(dsts, srcs, sizes, count, attributes, attribute_starts, attribute_count, stream))
METERED(cuMemcpyBatchAsync_v2_ptsz, BULK_COPY_BATCH, bulk_stream(stream), bulk_sum(sizes, count),
	(CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		CUmemcpyAttributes *attributes, size_t *attribute_starts, size_t attribute_count,
		CUstream stream),
	(dsts, srcs, sizes, count, attributes, attribute_starts, attribute_count, stream))

/* An array's element counts as one byte: equal batches have equal sums all the same. */
static uint64_t sum_3d(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
	uint64_t sum = 0;

	if (!bulk_matters() || !list)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += list[i].extent.width * list[i].extent.height * list[i].extent.depth;
	return sum;
}

METERED(cuMemcpy3DBatchAsync, BULK_COPY_BATCH, stream, sum_3d(list, count),
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
		CUstream stream),
	(count, list, failed, flags, stream))
METERED(cuMemcpy3DBatchAsync_ptsz, BULK_COPY_BATCH, bulk_stream(stream), sum_3d(list, count),
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
		CUstream stream),
	(count, list, failed, flags, stream))
METERED(cuMemcpy3DBatchAsync_v2, BULK_COPY_BATCH, stream, sum_3d(list, count),
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream),
	(count, list, flags, stream))
METERED(cuMemcpy3DBatchAsync_v2_ptsz, BULK_COPY_BATCH, bulk_stream(stream), sum_3d(list, count),
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream),
	(count, list, flags, stream))

static uint64_t sum_decompressed(const CUmemDecompressParams *list, size_t count)
{
	uint64_t sum = 0;

	if (!bulk_matters() || !list)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += list[i].srcNumBytes + list[i].dstNumBytes;
	return sum;
}

/* It has an engine of its own. */
SEPARATED(cuMemBatchDecompressAsync, stream, sum_decompressed(list, count),
	(CUmemDecompressParams * list, size_t count, unsigned int flags, size_t *failed,
		CUstream stream),
	(list, count, flags, failed, stream))
SEPARATED(cuMemBatchDecompressAsync_ptsz, bulk_stream(stream), sum_decompressed(list, count),
	(CUmemDecompressParams * list, size_t count, unsigned int flags, size_t *failed,
		CUstream stream),
	(list, count, flags, failed, stream))
