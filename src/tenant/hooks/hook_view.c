/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: what the tenant sees of its device through CUDA. */
#include "region/ledger.h"
#include "tenant/memory/charge.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/oom.h"
#include "tenant/memory/oversubscribe.h"

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

/* What a slice may show of the current device's memory. */
struct view {
	uint64_t room_bytes, quota_bytes;
	bool has_host; /* what the card does not have is had all the same, in the host's memory */
};

/* False where the driver's figures stand. */
static bool see_current(struct view *ret_view)
{
	struct device *device;
	uint64_t used;

	switch (state_enter()) {
	case STATE_ASIDE:
		return false;
	case STATE_CLOSED:
		*ret_view = (struct view){.quota_bytes = UINT64_MAX};
		return true;
	default:
		break;
	}
	if (state_current_device(&device) != CUDA_SUCCESS)
		return false;
	oom_look();
	charge_put_right(device);
	if (!slice_view(device, &ret_view->quota_bytes, &used))
		return false;
	ret_view->room_bytes = used < ret_view->quota_bytes ? ret_view->quota_bytes - used : 0;
	ret_view->has_host = oversubscribe_is_on(device);
	return true;
}

HOOK_BODY(cuMemGetInfo_v2, size_t *, free_bytes, size_t *, total_bytes)
{
	struct view view;
	CUresult r = cuda.cuMemGetInfo_v2(free_bytes, total_bytes);

	if (r != CUDA_SUCCESS || !see_current(&view))
		return r;
	if (free_bytes && (*free_bytes > view.room_bytes || view.has_host))
		*free_bytes = view.room_bytes;
	if (total_bytes && (*total_bytes > view.quota_bytes || view.has_host))
		*total_bytes = view.quota_bytes;
	return r;
}

HOOK_BODY(cuMemGetInfo, unsigned int *, free_bytes, unsigned int *, total_bytes)
{
	struct view view;
	CUresult r = cuda.cuMemGetInfo(free_bytes, total_bytes);

	if (r != CUDA_SUCCESS || !see_current(&view))
		return r;
	if (free_bytes && *free_bytes > view.room_bytes)
		*free_bytes = (unsigned int)view.room_bytes;
	if (total_bytes && *total_bytes > view.quota_bytes)
		*total_bytes = (unsigned int)view.quota_bytes;
	return r;
}

/* The quota of a device that the driver has just told of; false where there is none. */
static bool see_quota(CUdevice ordinal, uint64_t *ret_quota_bytes)
{
	struct device *device;
	uint64_t used;

	return state_enter() == STATE_OPEN && state_meet_device(ordinal, &device) == 0 &&
	       slice_view(device, ret_quota_bytes, &used);
}

HOOK_BODY(cuDeviceTotalMem_v2, size_t *, bytes, CUdevice, ordinal)
{
	uint64_t quota;
	CUresult r = cuda.cuDeviceTotalMem_v2(bytes, ordinal);

	if (r == CUDA_SUCCESS && see_quota(ordinal, &quota) &&
		(*bytes > quota || oversubscribe_is_on(state_device(ordinal))))
		*bytes = quota;
	return r;
}

HOOK_BODY(cuDeviceTotalMem, unsigned int *, bytes, CUdevice, ordinal)
{
	uint64_t quota;
	CUresult r = cuda.cuDeviceTotalMem(bytes, ordinal);

	if (r == CUDA_SUCCESS && see_quota(ordinal, &quota) && *bytes > quota)
		*bytes = (unsigned int)quota;
	return r;
}
