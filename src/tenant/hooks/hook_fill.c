/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: fills, prefetches of managed memory, and decompression. */
#include "tenant/hooks/bulk.h"

#define ROW(bytes, type) BULK_FILL, bytes##ull *count, CUdeviceptr, dst, type, value, size_t, count
#define ROWS(bytes, type)                                                                          \
	BULK_FILL_SHAPED, bytes##ull *width *height, CUdeviceptr, dst, size_t, pitch, type, value, \
		size_t, width, size_t, height

BULK_WIDTHS(cuMemsetD8, _v2, _ptds, ROW(1, unsigned char))
BULK_FORMS(cuMemsetD8Async, _ptsz, ROW(1, unsigned char), CUstream, stream)
BULK_WIDTHS(cuMemsetD16, _v2, _ptds, ROW(2, unsigned short))
BULK_FORMS(cuMemsetD16Async, _ptsz, ROW(2, unsigned short), CUstream, stream)
BULK_WIDTHS(cuMemsetD32, _v2, _ptds, ROW(4, unsigned int))
BULK_FORMS(cuMemsetD32Async, _ptsz, ROW(4, unsigned int), CUstream, stream)

BULK_WIDTHS(cuMemsetD2D8, _v2, _ptds, ROWS(1, unsigned char))
BULK_FORMS(cuMemsetD2D8Async, _ptsz, ROWS(1, unsigned char), CUstream, stream)
BULK_WIDTHS(cuMemsetD2D16, _v2, _ptds, ROWS(2, unsigned short))
BULK_FORMS(cuMemsetD2D16Async, _ptsz, ROWS(2, unsigned short), CUstream, stream)
BULK_WIDTHS(cuMemsetD2D32, _v2, _ptds, ROWS(4, unsigned int))
BULK_FORMS(cuMemsetD2D32Async, _ptsz, ROWS(4, unsigned int), CUstream, stream)

BULK_FORMS(cuMemPrefetchAsync, _ptsz, BULK_PREFETCH, bytes, CUdeviceptr, pointer, size_t, bytes,
	CUdevice, device, CUstream, stream)
BULK_FORMS(cuMemPrefetchAsync_v2, _ptsz, BULK_PREFETCH, bytes, CUdeviceptr, pointer, size_t, bytes,
	CUmemLocation, location, unsigned int, flags, CUstream, stream)

#define PREFETCHES                                                                               \
	BULK_PREFETCH, bulk_sum(sizes, count), CUdeviceptr *, pointers, size_t *, sizes, size_t, \
		count, CUmemLocation *, locations, size_t *, location_starts, size_t,            \
		location_count, unsigned long long, flags, CUstream, stream
BULK_FORMS(cuMemPrefetchBatchAsync, _ptsz, PREFETCHES)
BULK_FORMS(cuMemDiscardAndPrefetchBatchAsync, _ptsz, PREFETCHES)

static uint64_t sum_decompressed(const CUmemDecompressParams *list, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; list && i < count; i++)
		sum += list[i].srcNumBytes + list[i].dstNumBytes;
	return sum;
}

/* It has an engine of its own. */
BULK_FORMS(cuMemBatchDecompressAsync, _ptsz, list ? BULK_ENGINE : BULK_NOTHING,
	sum_decompressed(list, count), CUmemDecompressParams *, list, size_t, count, unsigned int,
	flags, size_t *, failed, CUstream, stream)
