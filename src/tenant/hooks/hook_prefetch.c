/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: moving managed memory to where it will be used. */
#include "tenant/hooks/bulk.h"

METERED(cuMemPrefetchAsync, BULK_PREFETCH, stream, bytes,
	(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream),
	(pointer, bytes, device, stream))
METERED(cuMemPrefetchAsync_ptsz, BULK_PREFETCH, bulk_stream(stream), bytes,
	(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream),
	(pointer, bytes, device, stream))
METERED(cuMemPrefetchAsync_v2, BULK_PREFETCH, stream, bytes,
	(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
		CUstream stream),
	(pointer, bytes, location, flags, stream))
METERED(cuMemPrefetchAsync_v2_ptsz, BULK_PREFETCH, bulk_stream(stream), bytes,
	(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
		CUstream stream),
	(pointer, bytes, location, flags, stream))

METERED(cuMemPrefetchBatchAsync, BULK_PREFETCH, stream, bulk_sum(sizes, count),
	(CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations,
		size_t *location_starts, size_t location_count, unsigned long long flags,
		CUstream stream),
	(pointers, sizes, count, locations, location_starts, location_count, flags, stream))
METERED(cuMemPrefetchBatchAsync_ptsz, BULK_PREFETCH, bulk_stream(stream), bulk_sum(sizes, count),
	(CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations,
		size_t *location_starts, size_t location_count, unsigned long long flags,
		CUstream stream),
	(pointers, sizes, count, locations, location_starts, location_count, flags, stream))
METERED(cuMemDiscardAndPrefetchBatchAsync, BULK_PREFETCH, stream, bulk_sum(sizes, count),
	(CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations,
		size_t *location_starts, size_t location_count, unsigned long long flags,
		CUstream stream),
	(pointers, sizes, count, locations, location_starts, location_count, flags, stream))
METERED(cuMemDiscardAndPrefetchBatchAsync_ptsz, BULK_PREFETCH, bulk_stream(stream),
	bulk_sum(sizes, count),
	(CUdeviceptr * pointers, size_t *sizes, size_t count, CUmemLocation *locations,
		size_t *location_starts, size_t location_count, unsigned long long flags,
		CUstream stream),
	(pointers, sizes, count, locations, location_starts, location_count, flags, stream))
