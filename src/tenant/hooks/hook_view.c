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

/* What the driver said as the slice may see it. */
#define SHOWN(said, ours, has_host) \
	((said) > (ours) || (has_host) ? (__typeof__(said))(ours) : (said))

#define GET_INFO(symbol, size, has_host)                                  \
	HOOK_BODY(symbol, size *, free_bytes, size *, total_bytes)        \
	{                                                                 \
		struct view view;                                         \
		size room, total;                                         \
		CUresult r = cuda.symbol(&room, &total);                  \
                                                                          \
		if (r != CUDA_SUCCESS)                                    \
			return r;                                         \
		if (see_current(&view)) {                                 \
			room = SHOWN(room, view.room_bytes, has_host);    \
			total = SHOWN(total, view.quota_bytes, has_host); \
		}                                                         \
		if (free_bytes)                                           \
			*free_bytes = room;                               \
		if (total_bytes)                                          \
			*total_bytes = total;                             \
		return r;                                                 \
	}

GET_INFO(cuMemGetInfo_v2, size_t, view.has_host)
GET_INFO(cuMemGetInfo, unsigned int, false)

/* The quota of a device that the driver has just told of; false where there is none. */
static bool see_quota(CUdevice ordinal, uint64_t *ret_quota_bytes)
{
	struct device *device;
	uint64_t used;

	return state_enter() == STATE_OPEN && state_meet_device(ordinal, &device) == 0 &&
	       slice_view(device, ret_quota_bytes, &used);
}

#define TOTAL(symbol, size, has_host)                                     \
	HOOK_BODY(symbol, size *, bytes, CUdevice, ordinal)               \
	{                                                                 \
		uint64_t quota;                                           \
		size total;                                               \
		CUresult r = cuda.symbol(bytes ? &total : NULL, ordinal); \
                                                                          \
		if (r == CUDA_SUCCESS && see_quota(ordinal, &quota))      \
			total = SHOWN(total, quota, has_host);            \
		return HOOK_GIVE(r, bytes, total);                        \
	}

TOTAL(cuDeviceTotalMem_v2, size_t, oversubscribe_is_on(state_device(ordinal)))
TOTAL(cuDeviceTotalMem, unsigned int, false)
