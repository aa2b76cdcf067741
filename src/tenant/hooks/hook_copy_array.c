/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: copies to and from a place in an array. */
#include "tenant/hooks/bulk.h"

BULK_FORMS(cuMemcpyDtoA_v2, _ptds, BULK_COPY_SHAPED, bytes, CUarray, dst, size_t, dst_offset,
	CUdeviceptr, src, size_t, bytes)

BULK_FORMS(cuMemcpyAtoD_v2, _ptds, BULK_COPY_SHAPED, bytes, CUdeviceptr, dst, CUarray, src, size_t,
	src_offset, size_t, bytes)

BULK_FORMS(cuMemcpyAtoA_v2, _ptds, BULK_COPY_SHAPED, bytes, CUarray, dst, size_t, dst_offset,
	CUarray, src, size_t, src_offset, size_t, bytes)

BULK_FORMS(cuMemcpyHtoA_v2, _ptds, BULK_ENGINE, bytes, CUarray, dst, size_t, dst_offset,
	const void *, src, size_t, bytes)
BULK_FORMS(cuMemcpyHtoAAsync_v2, _ptsz, BULK_ENGINE, bytes, CUarray, dst, size_t, dst_offset,
	const void *, src, size_t, bytes, CUstream, stream)

BULK_FORMS(cuMemcpyAtoH_v2, _ptds, BULK_ENGINE, bytes, void *, dst, CUarray, src, size_t,
	src_offset, size_t, bytes)
BULK_FORMS(cuMemcpyAtoHAsync_v2, _ptsz, BULK_ENGINE, bytes, void *, dst, CUarray, src, size_t,
	src_offset, size_t, bytes, CUstream, stream)
