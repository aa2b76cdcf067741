/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: copies of one row. On the device they are work like any other; to and from the host they hold a
 * copy engine.
 */
#include "tenant/hooks/bulk.h"

/* Either side may be on the host: the driver looks which it is, and nobody else can tell cheaply. */
BULK_FORMS(cuMemcpy, _ptds, BULK_COPY, bytes, CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes)
BULK_FORMS(cuMemcpyAsync, _ptsz, BULK_COPY, bytes, CUdeviceptr, dst, CUdeviceptr, src, size_t,
	bytes, CUstream, stream)

BULK_FORMS(
	cuMemcpyDtoD_v2, _ptds, BULK_COPY, bytes, CUdeviceptr, dst, CUdeviceptr, src, size_t, bytes)
BULK_FORMS(cuMemcpyDtoDAsync_v2, _ptsz, BULK_COPY, bytes, CUdeviceptr, dst, CUdeviceptr, src,
	size_t, bytes, CUstream, stream)

BULK_FORMS(cuMemcpyPeer, _ptds, BULK_COPY_PEER, bytes, CUdeviceptr, dst, CUcontext, dst_context,
	CUdeviceptr, src, CUcontext, src_context, size_t, bytes)
BULK_FORMS(cuMemcpyPeerAsync, _ptsz, BULK_COPY_PEER, bytes, CUdeviceptr, dst, CUcontext,
	dst_context, CUdeviceptr, src, CUcontext, src_context, size_t, bytes, CUstream, stream)

BULK_FORMS(cuMemcpyHtoD_v2, _ptds, BULK_ENGINE, bytes, CUdeviceptr, dst, const void *, src, size_t,
	bytes)
BULK_FORMS(cuMemcpyHtoDAsync_v2, _ptsz, BULK_ENGINE, bytes, CUdeviceptr, dst, const void *, src,
	size_t, bytes, CUstream, stream)

BULK_FORMS(cuMemcpyDtoH_v2, _ptds, BULK_ENGINE, bytes, void *, dst, CUdeviceptr, src, size_t, bytes)
BULK_FORMS(cuMemcpyDtoHAsync_v2, _ptsz, BULK_ENGINE, bytes, void *, dst, CUdeviceptr, src, size_t,
	bytes, CUstream, stream)
