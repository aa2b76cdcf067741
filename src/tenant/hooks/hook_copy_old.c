/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: copies and fills by the interfaces of CUDA 2, whose sizes and device pointers have 32 bits. */
#include "tenant/hooks/bulk.h"

BULK_BODY(cuMemcpyDtoD, NULL, BULK_COPY, bytes, CUdeviceptr_v1, dst, CUdeviceptr_v1, src,
	unsigned int, bytes)
BULK_BODY(cuMemcpyDtoDAsync, stream, BULK_COPY, bytes, CUdeviceptr_v1, dst, CUdeviceptr_v1, src,
	unsigned int, bytes, CUstream, stream)
BULK_BODY(cuMemcpyDtoA, NULL, BULK_COPY_SHAPED, bytes, CUarray, dst, unsigned int, dst_offset,
	CUdeviceptr_v1, src, unsigned int, bytes)
BULK_BODY(cuMemcpyAtoD, NULL, BULK_COPY_SHAPED, bytes, CUdeviceptr_v1, dst, CUarray, src,
	unsigned int, src_offset, unsigned int, bytes)
BULK_BODY(cuMemcpyAtoA, NULL, BULK_COPY_SHAPED, bytes, CUarray, dst, unsigned int, dst_offset,
	CUarray, src, unsigned int, src_offset, unsigned int, bytes)

BULK_BODY(cuMemcpyHtoD, NULL, BULK_ENGINE, bytes, CUdeviceptr_v1, dst, const void *, src,
	unsigned int, bytes)
BULK_BODY(cuMemcpyHtoDAsync, stream, BULK_ENGINE, bytes, CUdeviceptr_v1, dst, const void *, src,
	unsigned int, bytes, CUstream, stream)
BULK_BODY(cuMemcpyDtoH, NULL, BULK_ENGINE, bytes, void *, dst, CUdeviceptr_v1, src, unsigned int,
	bytes)
BULK_BODY(cuMemcpyDtoHAsync, stream, BULK_ENGINE, bytes, void *, dst, CUdeviceptr_v1, src,
	unsigned int, bytes, CUstream, stream)
BULK_BODY(cuMemcpyHtoA, NULL, BULK_ENGINE, bytes, CUarray, dst, unsigned int, dst_offset,
	const void *, src, unsigned int, bytes)
BULK_BODY(cuMemcpyHtoAAsync, stream, BULK_ENGINE, bytes, CUarray, dst, unsigned int, dst_offset,
	const void *, src, unsigned int, bytes, CUstream, stream)
BULK_BODY(cuMemcpyAtoH, NULL, BULK_ENGINE, bytes, void *, dst, CUarray, src, unsigned int,
	src_offset, unsigned int, bytes)
BULK_BODY(cuMemcpyAtoHAsync, stream, BULK_ENGINE, bytes, void *, dst, CUarray, src, unsigned int,
	src_offset, unsigned int, bytes, CUstream, stream)

BULK_BODY(cuMemsetD8, NULL, BULK_FILL, count, CUdeviceptr_v1, dst, unsigned char, value,
	unsigned int, count)
BULK_BODY(cuMemsetD2D8, NULL, BULK_FILL_SHAPED, 1ull * width * height, CUdeviceptr_v1, dst,
	unsigned int, pitch, unsigned char, value, unsigned int, width, unsigned int, height)
BULK_BODY(cuMemsetD16, NULL, BULK_FILL, 2ull * count, CUdeviceptr_v1, dst, unsigned short, value,
	unsigned int, count)
BULK_BODY(cuMemsetD2D16, NULL, BULK_FILL_SHAPED, 2ull * width * height, CUdeviceptr_v1, dst,
	unsigned int, pitch, unsigned short, value, unsigned int, width, unsigned int, height)
BULK_BODY(cuMemsetD32, NULL, BULK_FILL, 4ull * count, CUdeviceptr_v1, dst, unsigned int, value,
	unsigned int, count)
BULK_BODY(cuMemsetD2D32, NULL, BULK_FILL_SHAPED, 4ull * width * height, CUdeviceptr_v1, dst,
	unsigned int, pitch, unsigned int, value, unsigned int, width, unsigned int, height)
