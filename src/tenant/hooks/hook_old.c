/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: memory by the interfaces of CUDA 2, whose sizes and device pointers have 32 bits. Drivers
 * still export them; they work in a context that the cuCtxCreate of CUDA 2 has made. A pointer means
 * the same memory to both generations, so either may free what the other has allocated.
 */
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/pools.h"

HOOK_BODY(cuMemAlloc, CUdeviceptr_v1 *, pointer, unsigned int, bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!pointer || bytes == 0)
		return cuda.cuMemAlloc(pointer, bytes);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAlloc(pointer, bytes);
	return r == CUDA_SUCCESS ? allocations_keep(*pointer, bytes, &charge) : r;
}

HOOK_BODY(cuMemAllocPitch, CUdeviceptr_v1 *, pointer, unsigned int *, pitch, unsigned int,
	width_bytes, unsigned int, height, unsigned int, element_bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	uint64_t expected = allocations_pitched_bytes(width_bytes, height);
	CUresult r;

	if (!pointer || !pitch || expected == 0)
		return cuda.cuMemAllocPitch(pointer, pitch, width_bytes, height, element_bytes);
	r = charge_reserve_current(allocations_worst_bytes(expected), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAllocPitch(pointer, pitch, width_bytes, height, element_bytes);
	if (r != CUDA_SUCCESS)
		return r;
	return allocations_keep_pitched(*pointer, expected, (uint64_t)*pitch * height, &charge);
}

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
