/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: fills. */
#include "tenant/hooks/bulk.h"

METERED(cuMemsetD8_v2, BULK_FILL, NULL, count, (CUdeviceptr dst, unsigned char value, size_t count),
	(dst, value, count))
METERED(cuMemsetD8_v2_ptds, BULK_FILL, CU_STREAM_PER_THREAD, count,
	(CUdeviceptr dst, unsigned char value, size_t count), (dst, value, count))
METERED(cuMemsetD8Async, BULK_FILL, stream, count,
	(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD8Async_ptsz, BULK_FILL, bulk_stream(stream), count,
	(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD2D8_v2, BULK_FILL_SHAPED, NULL, 1 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D8_v2_ptds, BULK_FILL_SHAPED, CU_STREAM_PER_THREAD, 1 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D8Async, BULK_FILL_SHAPED, stream, 1 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))
METERED(cuMemsetD2D8Async_ptsz, BULK_FILL_SHAPED, bulk_stream(stream), 1 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))

METERED(cuMemsetD16_v2, BULK_FILL, NULL, 2 * count,
	(CUdeviceptr dst, unsigned short value, size_t count), (dst, value, count))
METERED(cuMemsetD16_v2_ptds, BULK_FILL, CU_STREAM_PER_THREAD, 2 * count,
	(CUdeviceptr dst, unsigned short value, size_t count), (dst, value, count))
METERED(cuMemsetD16Async, BULK_FILL, stream, 2 * count,
	(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD16Async_ptsz, BULK_FILL, bulk_stream(stream), 2 * count,
	(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD2D16_v2, BULK_FILL_SHAPED, NULL, 2 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D16_v2_ptds, BULK_FILL_SHAPED, CU_STREAM_PER_THREAD, 2 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D16Async, BULK_FILL_SHAPED, stream, 2 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))
METERED(cuMemsetD2D16Async_ptsz, BULK_FILL_SHAPED, bulk_stream(stream), 2 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))

METERED(cuMemsetD32_v2, BULK_FILL, NULL, 4 * count,
	(CUdeviceptr dst, unsigned int value, size_t count), (dst, value, count))
METERED(cuMemsetD32_v2_ptds, BULK_FILL, CU_STREAM_PER_THREAD, 4 * count,
	(CUdeviceptr dst, unsigned int value, size_t count), (dst, value, count))
METERED(cuMemsetD32Async, BULK_FILL, stream, 4 * count,
	(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD32Async_ptsz, BULK_FILL, bulk_stream(stream), 4 * count,
	(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream),
	(dst, value, count, stream))
METERED(cuMemsetD2D32_v2, BULK_FILL_SHAPED, NULL, 4 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D32_v2_ptds, BULK_FILL_SHAPED, CU_STREAM_PER_THREAD, 4 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height),
	(dst, pitch, value, width, height))
METERED(cuMemsetD2D32Async, BULK_FILL_SHAPED, stream, 4 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))
METERED(cuMemsetD2D32Async_ptsz, BULK_FILL_SHAPED, bulk_stream(stream), 4 * width * height,
	(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
		CUstream stream),
	(dst, pitch, value, width, height, stream))
