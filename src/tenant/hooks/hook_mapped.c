/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: memory that is created, mapped and shared by handle. */
#include <errno.h>

#include "base/fault.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/mapped_turns.h"
#include "tenant/memory/watch.h"

/* The charge for memory with these properties: none where it is not on a device. */
static CUresult reserve(
	uint64_t bytes, const CUmemAllocationProp *properties, struct charge *ret_charge)
{
	enum state_mode mode = state_enter();
	struct device *device;
	int r;

	if (mode == STATE_ASIDE || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	if (mode == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = state_meet_device(properties->location.id, &device);
	if (r < 0)
		return r == -ENODEV ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return charge_reserve(device, bytes, CHARGE_MAPPED, ret_charge);
}

HOOK_BODY(cuMemCreate, CUmemGenericAllocationHandle *, handle, size_t, bytes,
	const CUmemAllocationProp *, properties, unsigned long long, flags)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUmemGenericAllocationHandle made = 0;
	CUresult r;

	if (!handle || !properties || bytes == 0)
		return cuda.cuMemCreate(handle, bytes, properties, flags);
	HOOK_COPY(properties);
	/* It may come to lie on any device, and nothing tells on which it does. */
	if (properties->type == CU_MEM_ALLOCATION_TYPE_MANAGED && state_enter() == STATE_OPEN &&
		everywhere_is_bounded())
		return CUDA_ERROR_NOT_SUPPORTED;
	r = reserve(bytes, properties, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuMemCreate(&made, bytes, properties, flags);
	if (r == CUDA_SUCCESS)
		r = mapped_keep(made, &charge);
	return HOOK_GIVE(r, handle, made);
}

/* The last references of memory, of which a descriptor may keep some. */
struct last {
	uint64_t bytes;
	bool is_shared;	       /* some is a shared allocation, whose memory others may end */
	struct device *device; /* NULL: no descriptor was made of any */
	struct watch watch;
};

static void add_last(struct last *last, const struct holding_end *end)
{
	if (!end->is_last || end->holding.flags & HOLDING_OBJECT)
		return;
	last->is_shared |= end->holding.flags & HOLDING_SHARED;
	last->bytes += (uint64_t)end->holding.units * REGION_UNIT_BYTES;
	if (end->holding.flags & HOLDING_MAY_STAY)
		last->device = state_device(end->holding.device);
}

static void last_begin(struct last *last)
{
	if (UNLIKELY(last->device && !last->is_shared))
		watch_begin(last->device, &last->watch);
}

/* Whether the driver has ended all of it, so that no charge stays. */
static bool last_is_over(const struct last *last, CUresult r)
{
	return UNLIKELY(last->device && !last->is_shared && r == CUDA_SUCCESS) &&
	       watch_has_risen(&last->watch, last->bytes);
}

/* Nothing tells the same of a multicast object. */
static void say_over(struct holding_end *end)
{
	if (!(end->holding.flags & HOLDING_OBJECT))
		end->holding.flags &= (uint16_t)~HOLDING_MAY_STAY;
}

HOOK_BODY(cuMemRelease, CUmemGenericAllocationHandle, handle)
{
	struct last last = {.bytes = 0};
	struct holding_end end;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || holding_end_begin(HOLDING_CREATED, handle, &end) != 0) {
		CHARGE_STRAY_SCOPE();
		return cuda.cuMemRelease(handle);
	}
	FAULT("mapped: taken out");
	add_last(&last, &end);
	last_begin(&last);
	r = cuda.cuMemRelease(handle);
	if (last_is_over(&last, r))
		say_over(&end);
	holding_end_done(&end, r == CUDA_SUCCESS);
	return r;
}

HOOK_BODY(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, handle, void *, address)
{
	CUmemGenericAllocationHandle retained = 0;
	struct mapped_reference reference;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || !handle)
		return cuda.cuMemRetainAllocationHandle(handle, address);
	r = mapped_refer_begin_at((CUdeviceptr)(uintptr_t)address, &reference);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuMemRetainAllocationHandle(&retained, address);
	if (r == CUDA_SUCCESS && retained != reference.handle) {
		/* Something else is mapped there now. */
		mapped_let_go(retained);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (!mapped_refer_end(&reference, r == CUDA_SUCCESS)) {
		mapped_let_go(retained);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return HOOK_GIVE(r, handle, retained);
}

/* Enters the mapping that the driver has made. */
static bool keep_mapping(CUdeviceptr at, size_t bytes, const struct mapped_reference *reference)
{
	struct holding_end end;

	if (!mapped_refer_end(reference, true))
		return false;
	if (mapped_map(at, bytes, reference))
		return true;
	if (holding_end_begin_of(HOLDING_CREATED, reference->handle, reference->serial, &end) == 0)
		holding_end_done(&end, true);
	return false;
}

HOOK_BODY(cuMemMap, CUdeviceptr, at, size_t, bytes, size_t, offset, CUmemGenericAllocationHandle,
	handle, unsigned long long, flags)
{
	struct mapped_reference reference;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE)
		return cuda.cuMemMap(at, bytes, offset, handle, flags);
	MAPPED_TURN_SCOPE(at, bytes);
	r = mapped_refer_begin(handle, &reference);
	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuMemMap(at, bytes, offset, handle, flags);
	if (r != CUDA_SUCCESS) {
		mapped_refer_end(&reference, false);
	} else if (!keep_mapping(at, bytes, &reference)) {
		cuda.cuMemUnmap(at, bytes);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

HOOK_BODY(cuMemUnmap, CUdeviceptr, at, size_t, bytes)
{
	struct last last = {.bytes = 0};
	struct mapped_range range;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE)
		return cuda.cuMemUnmap(at, bytes);
	MAPPED_TURN_SCOPE(at, bytes);
	if (!mapped_unmap_begin(at, bytes, &range))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < range.count; i++)
		add_last(&last, &range.parts[i].end);
	last_begin(&last);
	r = cuda.cuMemUnmap(at, bytes);
	if (last_is_over(&last, r))
		for (unsigned i = 0; i < range.count; i++)
			say_over(&range.parts[i].end);
	mapped_unmap_end(&range, r == CUDA_SUCCESS);
	return r;
}
