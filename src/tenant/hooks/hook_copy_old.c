/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: copies and fills by the interfaces of CUDA 2, whose sizes and device pointers have 32 bits. */
#include "tenant/hooks/bulk.h"

METERED(cuMemcpyDtoD, BULK_COPY, NULL, bytes,
	(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes), (dst, src, bytes))
METERED(cuMemcpyDtoDAsync, BULK_COPY, stream, bytes,
	(CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream),
	(dst, src, bytes, stream))
METERED(cuMemcpyDtoA, BULK_COPY_SHAPED, NULL, bytes,
	(CUarray dst, unsigned int dst_offset, CUdeviceptr_v1 src, unsigned int bytes),
	(dst, dst_offset, src, bytes))
METERED(cuMemcpyAtoD, BULK_COPY_SHAPED, NULL, bytes,
	(CUdeviceptr_v1 dst, CUarray src, unsigned int src_offset, unsigned int bytes),
	(dst, src, src_offset, bytes))
METERED(cuMemcpyAtoA, BULK_COPY_SHAPED, NULL, bytes,
	(CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset,
		unsigned int bytes),
	(dst, dst_offset, src, src_offset, bytes))

SEPARATED(cuMemcpyHtoD, NULL, bytes, (CUdeviceptr_v1 dst, const void *src, unsigned int bytes),
	(dst, src, bytes))
SEPARATED(cuMemcpyHtoDAsync, stream, bytes,
	(CUdeviceptr_v1 dst, const void *src, unsigned int bytes, CUstream stream),
	(dst, src, bytes, stream))
SEPARATED(cuMemcpyDtoH, NULL, bytes, (void *dst, CUdeviceptr_v1 src, unsigned int bytes),
	(dst, src, bytes))
SEPARATED(cuMemcpyDtoHAsync, stream, bytes,
	(void *dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream),
	(dst, src, bytes, stream))
SEPARATED(cuMemcpyHtoA, NULL, bytes,
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int bytes),
	(dst, dst_offset, src, bytes))
SEPARATED(cuMemcpyHtoAAsync, stream, bytes,
	(CUarray dst, unsigned int dst_offset, const void *src, unsigned int bytes,
		CUstream stream),
	(dst, dst_offset, src, bytes, stream))
SEPARATED(cuMemcpyAtoH, NULL, bytes,
	(void *dst, CUarray src, unsigned int src_offset, unsigned int bytes),
	(dst, src, src_offset, bytes))
SEPARATED(cuMemcpyAtoHAsync, stream, bytes,
	(void *dst, CUarray src, unsigned int src_offset, unsigned int bytes, CUstream stream),
	(dst, src, src_offset, bytes, stream))

METERED(cuMemsetD8, BULK_FILL, NULL, count,
	(CUdeviceptr_v1 dst, unsigned char value, unsigned int count), (dst, value, count))
METERED(cuMemsetD2D8, BULK_FILL_SHAPED, NULL, 1ull * width * height,
	(CUdeviceptr_v1 dst, unsigned int pitch, unsigned char value, unsigned int width,
		unsigned int height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD16, BULK_FILL, NULL, 2ull * count,
	(CUdeviceptr_v1 dst, unsigned short value, unsigned int count), (dst, value, count))
METERED(cuMemsetD2D16, BULK_FILL_SHAPED, NULL, 2ull * width * height,
	(CUdeviceptr_v1 dst, unsigned int pitch, unsigned short value, unsigned int width,
		unsigned int height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD32, BULK_FILL, NULL, 4ull * count,
	(CUdeviceptr_v1 dst, unsigned int value, unsigned int count), (dst, value, count))
METERED(cuMemsetD2D32, BULK_FILL_SHAPED, NULL, 4ull * width * height,
	(CUdeviceptr_v1 dst, unsigned int pitch, unsigned int value, unsigned int width,
		unsigned int height),
	(dst, pitch, value, width, height))
