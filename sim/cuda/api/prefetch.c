/* SPDX-License-Identifier: Apache-2.0 */
/* Where managed memory is to be. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/cuda/model/time/timeline.h"

/* Managed memory in a range moves to a device as far as it fits, or to the host with device NULL. */
static CUresult prefetch(CUdeviceptr dptr, size_t count, struct device *device)
{
	CUdeviceptr end = dptr + count;
	CUresult result = CUDA_SUCCESS;

	if (count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	while (dptr < end && result == CUDA_SUCCESS) {
		struct extent extent;

		if (!lookup_extent(dptr, &extent) || !extent.is_managed)
			result = CUDA_ERROR_INVALID_VALUE;
		else
			heap_move_managed(extent.plain, device);
		dptr = extent.base + extent.bytes;
	}
	return result;
}

static CUresult prefetch_to(CUdeviceptr dptr, size_t count, const CUmemLocation *location)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return prefetch(dptr, count, NULL);
	if (!driver_device(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	return prefetch(dptr, count, driver_device(location->id));
}

ENTRY_STREAM(cuMemPrefetchAsync, _ptsz, handle,
	(CUdeviceptr dptr, size_t count, CUdevice ordinal, CUstream handle),
	(dptr, count, ordinal, handle))
{
	if (ordinal != CU_DEVICE_CPU && !driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	return prefetch(dptr, count, driver_device(ordinal));
}

ENTRY_STREAM(cuMemPrefetchAsync_v2, _ptsz, handle,
	(CUdeviceptr dptr, size_t count, CUmemLocation location, unsigned int flags,
		CUstream handle),
	(dptr, count, location, flags, handle))
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch_to(dptr, count, &location);
}

/* Each location is for the ranges from its start on; the first starts at the first range. */
static bool are_locations(
	const CUmemLocation *locations, const size_t *starts, size_t location_count, size_t count)
{
	if (!locations || !starts || location_count == 0 || location_count > count ||
		starts[0] != 0)
		return false;
	for (size_t i = 0; i < location_count; i++)
		if (starts[i] >= count || (i > 0 && starts[i] <= starts[i - 1]))
			return false;
	return true;
}

static CUresult prefetch_batch(const struct stream *stream, const CUdeviceptr *dptrs,
	const size_t *sizes, size_t count, const CUmemLocation *locations, const size_t *starts,
	size_t location_count, unsigned long long flags)
{
	CUresult result = CUDA_SUCCESS;

	/* A batch is given to any stream but the legacy one. */
	if (!dptrs || !sizes || flags != 0 || stream->is_legacy ||
		!are_locations(locations, starts, location_count, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0, at = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (at + 1 < location_count && starts[at + 1] == i)
			at++;
		result = prefetch_to(dptrs[i], sizes[i], &locations[at]);
	}
	return result;
}

ENTRY_STREAM(cuMemPrefetchBatchAsync, _ptsz, handle,
	(CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *locations, size_t *starts,
		size_t location_count, unsigned long long flags, CUstream handle),
	(dptrs, sizes, count, locations, starts, location_count, flags, handle))
{
	return prefetch_batch(
		stream, dptrs, sizes, count, locations, starts, location_count, flags);
}

/* Discarded memory may have any content, so it keeps what it had. */
ENTRY_STREAM(cuMemDiscardAndPrefetchBatchAsync, _ptsz, handle,
	(CUdeviceptr * dptrs, size_t *sizes, size_t count, CUmemLocation *locations, size_t *starts,
		size_t location_count, unsigned long long flags, CUstream handle),
	(dptrs, sizes, count, locations, starts, location_count, flags, handle))
{
	return prefetch_batch(
		stream, dptrs, sizes, count, locations, starts, location_count, flags);
}
