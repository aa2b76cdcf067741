/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: what the tenant sees of its device through CUDA. */
#include "region/ledger.h"
#include "shim/charge.h"
#include "shim/doors.h"
#include "shim/oom.h"
#include "shim/oversubscribe.h"

/* The device's quota and the slice's use of it; false where there is no quota. */
static bool slice_view(struct device *device, uint64_t *ret_quota_bytes, uint64_t *ret_used_bytes)
{
	uint32_t limit;

	state_refresh_limits(false);
	/* relaxed: see set_limit() */
	limit = atomic_load_explicit(&device->limit_units, memory_order_relaxed);
	if (limit == LEDGER_NO_LIMIT)
		return false;
	*ret_quota_bytes = (uint64_t)limit * REGION_UNIT_BYTES;
	*ret_used_bytes = ledger_used_bytes(state.region.file, device->entry);
	return true;
}

HOOK_BODY(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
{
	uint64_t quota, used, room;
	struct device *device;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuMemGetInfo_v2(free_bytes, total_bytes);
	if (r != CUDA_SUCCESS)
		return r;
	switch (state_enter()) {
	case STATE_ASIDE:
		return r;
	case STATE_CLOSED:
		if (free_bytes)
			*free_bytes = 0;
		return r;
	default:
		break;
	}
	if (state_current_device(&device) != CUDA_SUCCESS)
		return r;
	oom_look();
	charge_look_for_dead(device);
	if (!slice_view(device, &quota, &used))
		return r;
	room = used < quota ? quota - used : 0;
	/* What the card does not have is had all the same, in the host's memory. */
	if (free_bytes && (*free_bytes > room || oversubscribe_is_on(device)))
		*free_bytes = room;
	if (total_bytes && (*total_bytes > quota || oversubscribe_is_on(device)))
		*total_bytes = quota;
	return r;
}

HOOK_BODY(cuDeviceTotalMem_v2, size_t *bytes, CUdevice ordinal)
{
	uint64_t quota, used;
	struct device *device;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuDeviceTotalMem_v2(bytes, ordinal);
	if (r != CUDA_SUCCESS || state_enter() != STATE_OPEN)
		return r;
	if (state_meet_device(ordinal, &device) == 0 && slice_view(device, &quota, &used) &&
		(*bytes > quota || oversubscribe_is_on(device)))
		*bytes = quota;
	return r;
}
