/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: fills, prefetches of managed memory, and decompression. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tenant/hooks/bulk.h"
#include "tenant/memory/everywhere.h"

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

/* Where nothing is charged, nothing is sent. */
#define PREFETCH(symbol, ordinal, ...)                                                   \
	HOOK_FORMS(symbol, _ptsz, __VA_ARGS__)                                           \
	{                                                                                \
		if (UNLIKELY(!everywhere_may_lie_on(ordinal)))                           \
			return CUDA_ERROR_OUT_OF_MEMORY;                                 \
		BULK_CALL(real, stream, BULK_PREFETCH, bytes, (HOOK_NAMES(__VA_ARGS__))) \
	}

/* The device, or -1 for a place on the host. */
static inline CUdevice ordinal_of(CUmemLocation location)
{
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

PREFETCH(cuMemPrefetchAsync, device, CUdeviceptr, pointer, size_t, bytes, CUdevice, device,
	CUstream, stream)
PREFETCH(cuMemPrefetchAsync_v2, ordinal_of(location), CUdeviceptr, pointer, size_t, bytes,
	CUmemLocation, location, unsigned int, flags, CUstream, stream)

/* A copy of the places; NULL without memory, or where something must not be sent to one of them. */
static CUmemLocation *own_places(const CUmemLocation *locations, size_t count)
{
	CUmemLocation *own = calloc(count, sizeof(*own));

	if (own)
		memcpy(own, locations, count * sizeof(*own));
	for (size_t i = 0; own && i < count; i++) {
		if (everywhere_may_lie_on(ordinal_of(own[i])))
			continue;
		free(own);
		own = NULL;
	}
	return own;
}

#define PREFETCHES(symbol)                                                                     \
	HOOK_FORMS(symbol, _ptsz, CUdeviceptr *, pointers, size_t *, sizes, size_t, count,     \
		CUmemLocation *, locations, size_t *, location_starts, size_t, location_count, \
		unsigned long long, flags, CUstream, stream)                                   \
	{                                                                                      \
		_cleanup_free_ CUmemLocation *own = NULL;                                      \
                                                                                               \
		if (locations && location_count) {                                             \
			own = own_places(locations, location_count);                           \
			if (!own)                                                              \
				return CUDA_ERROR_OUT_OF_MEMORY;                               \
			locations = own;                                                       \
		}                                                                              \
		BULK_CALL(real, stream, BULK_PREFETCH, bulk_sum(sizes, count),                 \
			(pointers, sizes, count, locations, location_starts, location_count,   \
				flags, stream))                                                \
	}

PREFETCHES(cuMemPrefetchBatchAsync)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync)

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
