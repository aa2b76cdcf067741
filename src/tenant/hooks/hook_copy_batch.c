/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: batches of copies, from and to anywhere, and of decompressions. */
#include "tenant/hooks/bulk.h"

BULK_FORMS(cuMemcpyBatchAsync, _ptsz, BULK_COPY_BATCH, bulk_sum(sizes, count), CUdeviceptr *, dsts,
	CUdeviceptr *, srcs, size_t *, sizes, size_t, count, CUmemcpyAttributes *, attributes,
	size_t *, attribute_starts, size_t, attribute_count, size_t *, failed, CUstream, stream)
BULK_FORMS(cuMemcpyBatchAsync_v2, _ptsz, BULK_COPY_BATCH, bulk_sum(sizes, count), CUdeviceptr *,
	dsts, CUdeviceptr *, srcs, size_t *, sizes, size_t, count, CUmemcpyAttributes *, attributes,
	size_t *, attribute_starts, size_t, attribute_count, CUstream, stream)

/* An array's element counts as one byte: equal batches have equal sums all the same. */
static uint64_t sum_3d(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
	uint64_t sum = 0;

	if (!list)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += list[i].extent.width * list[i].extent.height * list[i].extent.depth;
	return sum;
}

BULK_FORMS(cuMemcpy3DBatchAsync, _ptsz, BULK_COPY_BATCH, sum_3d(list, count), size_t, count,
	CUDA_MEMCPY3D_BATCH_OP *, list, size_t *, failed, unsigned long long, flags, CUstream,
	stream)
BULK_FORMS(cuMemcpy3DBatchAsync_v2, _ptsz, BULK_COPY_BATCH, sum_3d(list, count), size_t, count,
	CUDA_MEMCPY3D_BATCH_OP *, list, unsigned long long, flags, CUstream, stream)

static uint64_t sum_decompressed(const CUmemDecompressParams *list, size_t count)
{
	uint64_t sum = 0;

	if (!list)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += list[i].srcNumBytes + list[i].dstNumBytes;
	return sum;
}

/* It has an engine of its own. */
BULK_FORMS(cuMemBatchDecompressAsync, _ptsz, BULK_ENGINE, sum_decompressed(list, count),
	CUmemDecompressParams *, list, size_t, count, unsigned int, flags, size_t *, failed,
	CUstream, stream)
