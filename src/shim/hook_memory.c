/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: plain memory. */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "shim/allocations.h"
#include "shim/doors.h"
#include "shim/oversubscribe.h"
#include "shim/pools.h"

HOOK_BODY(cuMemAlloc_v2, CUdeviceptr *pointer, size_t bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pointer || bytes == 0)
		return cuda.cuMemAlloc_v2(pointer, bytes);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAlloc_v2(pointer, bytes);
	return r == CUDA_SUCCESS ? allocations_keep(*pointer, bytes, &charge)
				 : oversubscribe_place(r, bytes, &charge, pointer);
}

/*
 * The driver chooses the pitch, so we learn it by reserving for the widest that we know: rows are
 * padded to a multiple of 512 bytes (H200, driver 580; the alignment of textures). What it really
 * took is charged afterwards.
 */
#define PITCH_STEP_BYTES 512u

static uint64_t pitched_bytes(uint64_t width_bytes, uint64_t height)
{
	uint64_t pitch = round_up_u64(width_bytes, PITCH_STEP_BYTES), bytes;

	return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

/* The rows of a stand-in are as far apart as the driver's own. */
static CUresult place_pitched(CUresult r, CUdeviceptr *pointer, size_t *pitch, size_t width_bytes,
	size_t height, struct charge *charge)
{
	r = oversubscribe_place(r, pitched_bytes(width_bytes, height), charge, pointer);
	if (r == CUDA_SUCCESS)
		*pitch = round_up_u64(width_bytes, PITCH_STEP_BYTES);
	return r;
}

HOOK_BODY(cuMemAllocPitch_v2, CUdeviceptr *pointer, size_t *pitch, size_t width_bytes,
	size_t height, unsigned int element_bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	uint64_t expected = pitched_bytes(width_bytes, height), taken;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pointer || !pitch || expected == 0)
		return cuda.cuMemAllocPitch_v2(pointer, pitch, width_bytes, height, element_bytes);
	r = charge_reserve_current(allocations_worst_bytes(expected), CHARGE_PLAIN, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemAllocPitch_v2(pointer, pitch, width_bytes, height, element_bytes);
	if (r != CUDA_SUCCESS)
		return place_pitched(r, pointer, pitch, width_bytes, height, &charge);
	taken = (uint64_t)*pitch * height;
	if (charge.device && allocations_worst_bytes(taken) > allocations_worst_bytes(expected)) {
		struct device *device = charge.device;

		/* A pitch wider than we know of: charge the whole, or let it go again. */
		charge_undo(&charge);
		r = charge_reserve(device, allocations_worst_bytes(taken), CHARGE_PLAIN, &charge);
		if (r != CUDA_SUCCESS) {
			cuda.cuMemFree_v2(*pointer);
			return r;
		}
	}
	return allocations_keep(*pointer, taken, &charge);
}

/*
 * Managed memory takes device memory when it is touched there, up to its size: so much is charged
 * from the beginning (docs/decisions/0009-managed-memory.md).
 */
HOOK_BODY(cuMemAllocManaged, CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
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

HOOK_BODY(cuMemFree_v2, CUdeviceptr pointer)
{
	struct allocation allocation;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &allocation) != 0)
		return cuda.cuMemFree_v2(pointer);
	r = cuda.cuMemFree_v2(pointer);
	if (r != CUDA_SUCCESS) {
		allocations_put_back(&allocation);
		return r;
	}
	allocations_give_back(&allocation);
	if (allocations_pool(&allocation))
		pools_freed(allocations_pool(&allocation), true);
	return r;
}

/* Managed memory cannot be shared, so a stand-in cannot either: the driver says so, and we why. */
HOOK_BODY(cuIpcGetMemHandle, CUipcMemHandle *handle, CUdeviceptr pointer)
{
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuIpcGetMemHandle(handle, pointer);
	if (r != CUDA_SUCCESS && state_enter() == STATE_OPEN && allocations_stands_in(pointer))
		log_warn("memory that was placed in the host's (CUDA_OVERSUBSCRIBE) cannot be "
			 "shared "
			 "with other processes",
			U64("pointer", pointer));
	return r;
}
