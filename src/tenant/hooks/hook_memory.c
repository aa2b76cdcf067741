/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: plain memory. */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/oversubscribe.h"
#include "tenant/memory/pools.h"

HOOK_BODY(cuMemAlloc_v2, CUdeviceptr *, pointer, size_t, bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!pointer || bytes == 0)
		return cuda.cuMemAlloc_v2(pointer, bytes);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAlloc_v2(pointer, bytes);
	return r == CUDA_SUCCESS ? allocations_keep(*pointer, bytes, &charge)
				 : oversubscribe_place(r, bytes, &charge, pointer);
}

/* The rows of a host fallback are as far apart as the driver's own. */
static CUresult place_pitched(CUresult r, CUdeviceptr *pointer, size_t *pitch, size_t width_bytes,
	size_t height, struct charge *charge)
{
	r = oversubscribe_place(r, allocations_pitched_bytes(width_bytes, height), charge, pointer);
	if (r == CUDA_SUCCESS)
		*pitch = allocations_pitched_bytes(width_bytes, 1);
	return r;
}

HOOK_BODY(cuMemAllocPitch_v2, CUdeviceptr *, pointer, size_t *, pitch, size_t, width_bytes, size_t,
	height, unsigned int, element_bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	uint64_t expected = allocations_pitched_bytes(width_bytes, height);
	CUresult r;

	if (!pointer || !pitch || expected == 0)
		return cuda.cuMemAllocPitch_v2(pointer, pitch, width_bytes, height, element_bytes);
	r = charge_reserve_current(allocations_worst_bytes(expected), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAllocPitch_v2(pointer, pitch, width_bytes, height, element_bytes);
	if (r != CUDA_SUCCESS)
		return place_pitched(r, pointer, pitch, width_bytes, height, &charge);
	return allocations_keep_pitched(*pointer, expected, (uint64_t)*pitch * height, &charge);
}

/*
 * Managed memory takes device memory when it is touched there, up to its size: so much is charged
 * from the beginning (docs/decisions/0009-managed-memory.md).
 */
HOOK_BODY(cuMemAllocManaged, CUdeviceptr *, pointer, size_t, bytes, unsigned int, flags)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!pointer || bytes == 0)
		return cuda.cuMemAllocManaged(pointer, bytes, flags);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_MANAGED, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAllocManaged(pointer, bytes, flags);
	/* CHUNK_BYTES at least: managed memory is placed by pages of its own, not in shared chunks. */
	return r == CUDA_SUCCESS
		       ? allocations_keep(*pointer, allocations_worst_bytes(bytes), &charge)
		       : r;
}

static uint64_t free_bytes(void)
{
	size_t free = 0, total;

	return cuda.cuMemGetInfo_v2 && cuda.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free
											   : 0;
}

/*
 * Frees memory that something else may keep, like a network card that has it registered. Only what
 * the device has free afterwards tells; where it is no more, the charge stays for as long as the
 * process.
 */
static CUresult free_watched(const struct allocation *allocation)
{
	uint64_t before = free_bytes(), after;
	CUresult r = cuda.cuMemFree_v2(allocation->pointer);

	if (r != CUDA_SUCCESS) {
		allocations_put_back(allocation);
		return r;
	}
	after = free_bytes();
	if (before && after >= before + allocations_bytes(allocation))
		allocations_give_back(allocation);
	else
		log_info("freed memory is kept by a descriptor: charged until the process ends");
	return r;
}

HOOK_BODY(cuMemFree_v2, CUdeviceptr, pointer)
{
	struct allocation allocation;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &allocation) != 0)
		return cuda.cuMemFree_v2(pointer);
	if (UNLIKELY(allocations_is_to_be_watched(&allocation)))
		return free_watched(&allocation);
	r = cuda.cuMemFree_v2(pointer);
	pools_after_free(r, &allocation, true);
	return r;
}
