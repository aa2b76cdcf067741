/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: memory by the interfaces of CUDA 2, whose sizes and device pointers have 32 bits. Drivers
 * still export them; they work in a context that the cuCtxCreate of CUDA 2 has made. A pointer means
 * the same memory to both generations, so either may free what the other has allocated.
 */
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/pools.h"

/* An allocation: the bytes that are asked for, none where the driver will refuse, and those that it took. */
#define ALLOCATE(symbol, asked, taken, ...)                                              \
	HOOK_BODY(symbol, CUdeviceptr_v1 *, pointer, __VA_ARGS__)                        \
	{                                                                                \
		_cleanup_charge_ struct charge charge = CHARGE_NULL;                     \
		uint64_t bytes_ = pointer ? (asked) : 0;                                 \
		CUresult r = CUDA_SUCCESS;                                               \
                                                                                         \
		if (bytes_)                                                              \
			r = charge_reserve_current(                                      \
				allocations_worst_bytes(bytes_), CHARGE_PLAIN, &charge); \
		if (r == CUDA_SUCCESS)                                                   \
			r = cuda.symbol(pointer, HOOK_NAMES(__VA_ARGS__));               \
		if (r != CUDA_SUCCESS || !bytes_)                                        \
			return r;                                                        \
		return allocations_keep_pitched(*pointer, bytes_, taken, &charge);       \
	}

ALLOCATE(cuMemAlloc, bytes, bytes, unsigned int, bytes)
ALLOCATE(cuMemAllocPitch, pitch ? allocations_pitched_bytes(width_bytes, height) : 0,
	(uint64_t)*pitch *height, unsigned int *, pitch, unsigned int, width_bytes, unsigned int,
	height, unsigned int, element_bytes)

HOOK_BODY(cuMemFree, CUdeviceptr_v1, pointer)
{
	struct allocation allocation;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &allocation) != 0)
		return cuda.cuMemFree(pointer);
	r = cuda.cuMemFree(pointer);
	pools_after_free(r, &allocation, true);
	return r;
}
