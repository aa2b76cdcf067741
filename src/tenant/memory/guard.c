/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by which the driver may take device memory that nobody names. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/guard.h"

#include "base/fault.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/contexts.h"
#include "tenant/slice/parts.h"

/* Our own question is no part of what the program captures, and must not end its capture. */
uint64_t guard_free_bytes(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_exchanged = cuda.cuThreadExchangeStreamCaptureMode &&
			    cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	size_t free, total;
	CUresult r = cuda.cuMemGetInfo_v2(&free, &total);

	if (is_exchanged)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
	return r == CUDA_SUCCESS ? free : UINT64_MAX;
}

CUresult guard_begin(struct device *device, uint64_t bound_bytes, struct guard *ret_guard)
{
	struct charge charge = {.device = device, .kind = CHARGE_UNATTRIBUTED};
	uint64_t current = current_since();
	CUresult r = CUDA_SUCCESS;

	if (bound_bytes)
		r = charge_reserve(device, bound_bytes, CHARGE_UNATTRIBUTED, &charge);
	if (r == CUDA_SUCCESS)
		*ret_guard = (struct guard){.charge = charge,
			.traffic = charge_traffic(),
			.changes = ledger_changes(state.region.file, device->entry),
			.found_bytes = reconcile_found_bytes(device),
			.current = current,
			.free_bytes = guard_free_bytes(),
			.is_armed = true};
	if (r == CUDA_SUCCESS)
		charge_code_begins(device);
	return r;
}

CUresult guard_begin_current(uint64_t bound_bytes, struct guard *ret_guard)
{
	uint64_t current = current_since();
	struct device *device;
	CUresult r;

	*ret_guard = (struct guard){.is_armed = false};
	switch (state_enter()) {
	case STATE_OPEN:
		r = state_current_device(&device);
		/* Without a context the driver says so itself. */
		if (r != CUDA_SUCCESS)
			return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_SUCCESS;
		r = guard_begin(device, bound_bytes, ret_guard);
		if (r == CUDA_SUCCESS)
			ret_guard->current = current;
		return r;
	case STATE_CLOSED:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_SUCCESS;
	}
}

/* Whether nothing in the slice has been taken or given back meanwhile, as far as its books say. */
static bool is_quiet(const struct guard *guard)
{
	return guard->traffic == charge_traffic() &&
	       (uint32_t)guard->traffic == (guard->charge.is_under_way ? 1 : 0) &&
	       guard->changes == ledger_changes(state.region.file, guard->charge.device->entry);
}

/* What a call has taken in a context that nobody knows. */
static void compare_all(void)
{
	struct device *device;
	int count = 0;

	if (!cuda.cuDeviceGetCount || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		count = 0;
	for (int i = 0; i < count && i < STATE_ORDINALS - 1; i++)
		if (state_meet_device(i, &device) == 0)
			parts_compare(device, PARTS_REFUSAL);
}

bool guard_end(struct guard *guard)
{
	struct device *d = guard->charge.device;
	uint64_t before = guard->free_bytes, after;
	bool is_same;

	if (!guard->is_armed)
		return true;
	FAULT("guard: the driver was called");
	after = guard_free_bytes();
	guard->life = contexts_life_current();
	is_same = current_is_same(guard->current);
	if (!is_same) {
		after = UINT64_MAX;
		guard->life = 0;
	}
	guard->taken_bytes = before == UINT64_MAX || after == UINT64_MAX
				     ? (int64_t)guard->charge.units * REGION_UNIT_BYTES
				     : (int64_t)(before - after);
	/* Free memory that did not move may hide what was taken behind what somebody else gave back. */
	if (guard->charge.units == 0 && after == before && after != UINT64_MAX)
		charge_undo(&guard->charge);
	else
		guard->growth = reconcile_guarded(d, &guard->charge,
			&(struct reconcile_call){.free_change_bytes = guard->taken_bytes,
				.life = guard->life,
				.is_quiet = is_same && is_quiet(guard),
				.is_bounded = guard->is_bounded,
				.is_open_ended = guard->is_open_ended,
				.is_end = guard->is_end});
	charge_code_ends(d);
	guard->is_armed = false;
	if (!is_same) {
		log_warn("another context was made current within a call");
		guard->growth.is_certain = guard->growth.is_measured = false;
		compare_all();
		return false;
	}
	return !charge_is_above_quota(d) || reconcile_found_bytes(d) == guard->found_bytes;
}

void guard_cancel(struct guard *guard)
{
	if (!guard->is_armed)
		return;
	charge_code_ends(guard->charge.device);
	charge_undo(&guard->charge);
	guard->is_armed = false;
}
