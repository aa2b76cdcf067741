/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: copies of one row. On the device they are work like any other; to and from the host they hold a
 * copy engine.
 */
#include "tenant/hooks/bulk.h"

/* Either side may be on the host: the driver looks which it is, and nobody else can tell cheaply. */
METERED(cuMemcpy, BULK_COPY, NULL, bytes, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	(dst, src, bytes))
METERED(cuMemcpy_ptds, BULK_COPY, CU_STREAM_PER_THREAD, bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes))
METERED(cuMemcpyAsync, BULK_COPY, stream, bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))
METERED(cuMemcpyAsync_ptsz, BULK_COPY, bulk_stream(stream), bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))

METERED(cuMemcpyDtoD_v2, BULK_COPY, NULL, bytes, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	(dst, src, bytes))
METERED(cuMemcpyDtoD_v2_ptds, BULK_COPY, CU_STREAM_PER_THREAD, bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes))
METERED(cuMemcpyDtoDAsync_v2, BULK_COPY, stream, bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))
METERED(cuMemcpyDtoDAsync_v2_ptsz, BULK_COPY, bulk_stream(stream), bytes,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))

METERED(cuMemcpyPeer, BULK_COPY_PEER, NULL, bytes,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t bytes),
	(dst, dst_context, src, src_context, bytes))
METERED(cuMemcpyPeer_ptds, BULK_COPY_PEER, CU_STREAM_PER_THREAD, bytes,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t bytes),
	(dst, dst_context, src, src_context, bytes))
METERED(cuMemcpyPeerAsync, BULK_COPY_PEER, stream, bytes,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t bytes, CUstream stream),
	(dst, dst_context, src, src_context, bytes, stream))
METERED(cuMemcpyPeerAsync_ptsz, BULK_COPY_PEER, bulk_stream(stream), bytes,
	(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		size_t bytes, CUstream stream),
	(dst, dst_context, src, src_context, bytes, stream))

SEPARATED(cuMemcpyHtoD_v2, NULL, bytes, (CUdeviceptr dst, const void *src, size_t bytes),
	(dst, src, bytes))
SEPARATED(cuMemcpyHtoD_v2_ptds, CU_STREAM_PER_THREAD, bytes,
	(CUdeviceptr dst, const void *src, size_t bytes), (dst, src, bytes))
SEPARATED(cuMemcpyHtoDAsync_v2, stream, bytes,
	(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))
SEPARATED(cuMemcpyHtoDAsync_v2_ptsz, bulk_stream(stream), bytes,
	(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
	(dst, src, bytes, stream))

SEPARATED(
	cuMemcpyDtoH_v2, NULL, bytes, (void *dst, CUdeviceptr src, size_t bytes), (dst, src, bytes))
SEPARATED(cuMemcpyDtoH_v2_ptds, CU_STREAM_PER_THREAD, bytes,
	(void *dst, CUdeviceptr src, size_t bytes), (dst, src, bytes))
SEPARATED(cuMemcpyDtoHAsync_v2, stream, bytes,
	(void *dst, CUdeviceptr src, size_t bytes, CUstream stream), (dst, src, bytes, stream))
SEPARATED(cuMemcpyDtoHAsync_v2_ptsz, bulk_stream(stream), bytes,
	(void *dst, CUdeviceptr src, size_t bytes, CUstream stream), (dst, src, bytes, stream))
