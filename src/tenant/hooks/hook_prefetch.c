/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: moving managed memory to where it will be used. */
#include "tenant/hooks/bulk.h"

BULK_FORMS(cuMemPrefetchAsync, _ptsz, BULK_PREFETCH, bytes, CUdeviceptr, pointer, size_t, bytes,
	CUdevice, device, CUstream, stream)
BULK_FORMS(cuMemPrefetchAsync_v2, _ptsz, BULK_PREFETCH, bytes, CUdeviceptr, pointer, size_t, bytes,
	CUmemLocation, location, unsigned int, flags, CUstream, stream)

BULK_FORMS(cuMemPrefetchBatchAsync, _ptsz, BULK_PREFETCH, bulk_sum(sizes, count), CUdeviceptr *,
	pointers, size_t *, sizes, size_t, count, CUmemLocation *, locations, size_t *,
	location_starts, size_t, location_count, unsigned long long, flags, CUstream, stream)
BULK_FORMS(cuMemDiscardAndPrefetchBatchAsync, _ptsz, BULK_PREFETCH, bulk_sum(sizes, count),
	CUdeviceptr *, pointers, size_t *, sizes, size_t, count, CUmemLocation *, locations,
	size_t *, location_starts, size_t, location_count, unsigned long long, flags, CUstream,
	stream)
