/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: fills. */
#include "tenant/hooks/bulk.h"

BULK_FORMS(cuMemsetD8_v2, _ptds, BULK_FILL, count, CUdeviceptr, dst, unsigned char, value, size_t,
	count)
BULK_FORMS(cuMemsetD8Async, _ptsz, BULK_FILL, count, CUdeviceptr, dst, unsigned char, value, size_t,
	count, CUstream, stream)
BULK_FORMS(cuMemsetD2D8_v2, _ptds, BULK_FILL_SHAPED, 1 * width * height, CUdeviceptr, dst, size_t,
	pitch, unsigned char, value, size_t, width, size_t, height)
BULK_FORMS(cuMemsetD2D8Async, _ptsz, BULK_FILL_SHAPED, 1 * width * height, CUdeviceptr, dst, size_t,
	pitch, unsigned char, value, size_t, width, size_t, height, CUstream, stream)

BULK_FORMS(cuMemsetD16_v2, _ptds, BULK_FILL, 2 * count, CUdeviceptr, dst, unsigned short, value,
	size_t, count)
BULK_FORMS(cuMemsetD16Async, _ptsz, BULK_FILL, 2 * count, CUdeviceptr, dst, unsigned short, value,
	size_t, count, CUstream, stream)
BULK_FORMS(cuMemsetD2D16_v2, _ptds, BULK_FILL_SHAPED, 2 * width * height, CUdeviceptr, dst, size_t,
	pitch, unsigned short, value, size_t, width, size_t, height)
BULK_FORMS(cuMemsetD2D16Async, _ptsz, BULK_FILL_SHAPED, 2 * width * height, CUdeviceptr, dst,
	size_t, pitch, unsigned short, value, size_t, width, size_t, height, CUstream, stream)

BULK_FORMS(cuMemsetD32_v2, _ptds, BULK_FILL, 4 * count, CUdeviceptr, dst, unsigned int, value,
	size_t, count)
BULK_FORMS(cuMemsetD32Async, _ptsz, BULK_FILL, 4 * count, CUdeviceptr, dst, unsigned int, value,
	size_t, count, CUstream, stream)
BULK_FORMS(cuMemsetD2D32_v2, _ptds, BULK_FILL_SHAPED, 4 * width * height, CUdeviceptr, dst, size_t,
	pitch, unsigned int, value, size_t, width, size_t, height)
BULK_FORMS(cuMemsetD2D32Async, _ptsz, BULK_FILL_SHAPED, 4 * width * height, CUdeviceptr, dst,
	size_t, pitch, unsigned int, value, size_t, width, size_t, height, CUstream, stream)
