/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: copies to and from a place in an array. */
#include "tenant/hooks/bulk.h"

METERED(cuMemcpyDtoA_v2, BULK_COPY_SHAPED, NULL, bytes,
	(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes),
	(dst, dst_offset, src, bytes))
METERED(cuMemcpyDtoA_v2_ptds, BULK_COPY_SHAPED, CU_STREAM_PER_THREAD, bytes,
	(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes),
	(dst, dst_offset, src, bytes))

METERED(cuMemcpyAtoD_v2, BULK_COPY_SHAPED, NULL, bytes,
	(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes),
	(dst, src, src_offset, bytes))
METERED(cuMemcpyAtoD_v2_ptds, BULK_COPY_SHAPED, CU_STREAM_PER_THREAD, bytes,
	(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes),
	(dst, src, src_offset, bytes))

METERED(cuMemcpyAtoA_v2, BULK_COPY_SHAPED, NULL, bytes,
	(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
	(dst, dst_offset, src, src_offset, bytes))
METERED(cuMemcpyAtoA_v2_ptds, BULK_COPY_SHAPED, CU_STREAM_PER_THREAD, bytes,
	(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
	(dst, dst_offset, src, src_offset, bytes))

SEPARATED(cuMemcpyHtoA_v2, NULL, bytes,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes),
	(dst, dst_offset, src, bytes))
SEPARATED(cuMemcpyHtoA_v2_ptds, CU_STREAM_PER_THREAD, bytes,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes),
	(dst, dst_offset, src, bytes))
SEPARATED(cuMemcpyHtoAAsync_v2, stream, bytes,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream),
	(dst, dst_offset, src, bytes, stream))
SEPARATED(cuMemcpyHtoAAsync_v2_ptsz, bulk_stream(stream), bytes,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream),
	(dst, dst_offset, src, bytes, stream))

SEPARATED(cuMemcpyAtoH_v2, NULL, bytes, (void *dst, CUarray src, size_t src_offset, size_t bytes),
	(dst, src, src_offset, bytes))
SEPARATED(cuMemcpyAtoH_v2_ptds, CU_STREAM_PER_THREAD, bytes,
	(void *dst, CUarray src, size_t src_offset, size_t bytes), (dst, src, src_offset, bytes))
SEPARATED(cuMemcpyAtoHAsync_v2, stream, bytes,
	(void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream),
	(dst, src, src_offset, bytes, stream))
SEPARATED(cuMemcpyAtoHAsync_v2_ptsz, bulk_stream(stream), bytes,
	(void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream),
	(dst, src, src_offset, bytes, stream))
