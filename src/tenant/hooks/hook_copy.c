/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: copies. On the device they are work like any other; to and from the host they hold a copy engine. Where
 * either side may be on the host, the driver alone can tell cheaply which it is.
 */
#include "tenant/hooks/bulk.h"

/* One row */
#define ANY BULK_COPY, bytes, CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes
BULK_FORMS(cuMemcpy, _ptds, ANY)
BULK_FORMS(cuMemcpyAsync, _ptsz, ANY, CUstream, stream)

BULK_WIDTHS(cuMemcpyDtoD, _v2, _ptds, ANY)
BULK_WIDTHS(cuMemcpyDtoDAsync, _v2, _ptsz, ANY, CUstream, stream)

#define TO_DEVICE BULK_ENGINE, bytes, CUdeviceptr, dst, const void *, src, size_t, bytes
BULK_WIDTHS(cuMemcpyHtoD, _v2, _ptds, TO_DEVICE)
BULK_WIDTHS(cuMemcpyHtoDAsync, _v2, _ptsz, TO_DEVICE, CUstream, stream)

#define TO_HOST(kind) kind, bytes, void *, dst, CUdeviceptr, src, size_t, bytes
BULK_WIDTHS(cuMemcpyDtoH, _v2, _ptds, TO_HOST(BULK_FETCH))
BULK_WIDTHS(cuMemcpyDtoHAsync, _v2, _ptsz, TO_HOST(BULK_ENGINE), CUstream, stream)

#define PEER                                                                               \
	BULK_COPY_PEER, bytes, CUdeviceptr, dst, CUcontext, dst_context, CUdeviceptr, src, \
		CUcontext, src_context, size_t, bytes
BULK_FORMS(cuMemcpyPeer, _ptds, PEER)
BULK_FORMS(cuMemcpyPeerAsync, _ptsz, PEER, CUstream, stream)

/* To and from a place in an array */
#define DTOA BULK_COPY_SHAPED, bytes, CUarray, dst, size_t, at, CUdeviceptr, src, size_t, bytes
BULK_WIDTHS(cuMemcpyDtoA, _v2, _ptds, DTOA)

#define ATOD BULK_COPY_SHAPED, bytes, CUdeviceptr, dst, CUarray, src, size_t, at, size_t, bytes
BULK_WIDTHS(cuMemcpyAtoD, _v2, _ptds, ATOD)

#define ATOA                                                                                 \
	BULK_COPY_SHAPED, bytes, CUarray, dst, size_t, dst_at, CUarray, src, size_t, src_at, \
		size_t, bytes
BULK_WIDTHS(cuMemcpyAtoA, _v2, _ptds, ATOA)

#define HTOA BULK_ENGINE, bytes, CUarray, dst, size_t, at, const void *, src, size_t, bytes
BULK_WIDTHS(cuMemcpyHtoA, _v2, _ptds, HTOA)
BULK_WIDTHS(cuMemcpyHtoAAsync, _v2, _ptsz, HTOA, CUstream, stream)

#define ATOH(kind) kind, bytes, void *, dst, CUarray, src, size_t, at, size_t, bytes
BULK_WIDTHS(cuMemcpyAtoH, _v2, _ptds, ATOH(BULK_FETCH))
BULK_WIDTHS(cuMemcpyAtoHAsync, _v2, _ptsz, ATOH(BULK_ENGINE), CUstream, stream)

/* Rows and layers: a description says what they are. A unified address may be on the host, too. */
#define IS_HOSTS(c) \
	((c)->srcMemoryType == CU_MEMORYTYPE_HOST || (c)->dstMemoryType == CU_MEMORYTYPE_HOST)
/* Asked first: what is metered is what is done. */
#define KIND(c)	    (!(c) ? BULK_NOTHING : (HOOK_COPY(c), IS_HOSTS(c) ? BULK_ENGINE : BULK_COPY_SHAPED))
#define BYTES_2D(c) ((c) ? (uint64_t)(c)->WidthInBytes * (c)->Height : 0)
#define BYTES_3D(c) ((c) ? (uint64_t)(c)->WidthInBytes * (c)->Height * (c)->Depth : 0)
#define FLAT	    KIND(copy), BYTES_2D(copy), CUDA_MEMCPY2D const *, copy
#define DEEP(type)  KIND(copy), BYTES_3D(copy), type const *, copy

BULK_WIDTHS(cuMemcpy2D, _v2, _ptds, FLAT)
BULK_WIDTHS(cuMemcpy2DUnaligned, _v2, _ptds, FLAT)
BULK_WIDTHS(cuMemcpy2DAsync, _v2, _ptsz, FLAT, CUstream, stream)
BULK_WIDTHS(cuMemcpy3D, _v2, _ptds, DEEP(CUDA_MEMCPY3D))
BULK_WIDTHS(cuMemcpy3DAsync, _v2, _ptsz, DEEP(CUDA_MEMCPY3D), CUstream, stream)
BULK_FORMS(cuMemcpy3DPeer, _ptds, DEEP(CUDA_MEMCPY3D_PEER))
BULK_FORMS(cuMemcpy3DPeerAsync, _ptsz, DEEP(CUDA_MEMCPY3D_PEER), CUstream, stream)

/* Batches, from and to anywhere. Those of CUDA 12 say which of the copies failed. */
#define BATCH                                                                               \
	BULK_COPY_BATCH, bulk_sum(sizes, count), CUdeviceptr *, dsts, CUdeviceptr *, srcs,  \
		size_t *, sizes, size_t, count, CUmemcpyAttributes *, attributes, size_t *, \
		attribute_starts, size_t, attribute_count
BULK_FORMS(cuMemcpyBatchAsync, _ptsz, BATCH, size_t *, failed, CUstream, stream)
BULK_FORMS(cuMemcpyBatchAsync_v2, _ptsz, BATCH, CUstream, stream)

/* An array's element counts as one byte: equal batches have equal sums all the same. */
static uint64_t sum_3d(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; list && i < count; i++)
		sum += list[i].extent.width * list[i].extent.height * list[i].extent.depth;
	return sum;
}

#define BATCH_3D BULK_COPY_BATCH, sum_3d(list, count), size_t, count, CUDA_MEMCPY3D_BATCH_OP *, list
BULK_FORMS(cuMemcpy3DBatchAsync, _ptsz, BATCH_3D, size_t *, failed, unsigned long long, flags,
	CUstream, stream)
BULK_FORMS(cuMemcpy3DBatchAsync_v2, _ptsz, BATCH_3D, unsigned long long, flags, CUstream, stream)
