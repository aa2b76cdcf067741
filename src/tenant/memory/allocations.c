/* SPDX-License-Identifier: Apache-2.0 */
/* What each pointer was charged for: the holdings of HOLDING_POINTERS. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/allocations.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mark.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/chunk.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/ipc.h"

uint64_t allocations_worst_bytes(uint64_t bytes)
{
	return round_up_u64(bytes, CHUNK_BYTES);
}

static bool is_in_one_chunk(CUdeviceptr pointer, uint64_t bytes)
{
	return bytes < CHUNK_BYTES && pointer / CHUNK_BYTES == (pointer + bytes - 1) / CHUNK_BYTES;
}

/* Enters the pointer, and its chunk where it shares one; *ret_is_charged says whose the charge is. */
static int enter(CUdeviceptr pointer, uint64_t bytes, const struct charge *charge, uint64_t life,
	unsigned flags, bool *ret_is_charged)
{
	struct holding holding;

	*ret_is_charged = true;
	if (is_in_one_chunk(pointer, bytes))
		flags |= HOLDING_IN_CHUNK;
	if (holding_put_charge(HOLDING_POINTERS, pointer, charge, life, flags) < 0)
		return -1;
	FAULT("plain: pointer entered");
	if (!(flags & HOLDING_IN_CHUNK) ||
		chunk_enter(pointer, charge->unnamed, ret_is_charged) == 0)
		return 0;
	if (holding_take(HOLDING_POINTERS, pointer, &holding) != 0)
		log_debug("a pointer was freed while it was being entered");
	return -1;
}

static CUresult keep(CUdeviceptr pointer, uint64_t bytes, struct charge *charge, unsigned flags)
{
	uint64_t life;
	bool is_charged;

	if (!charge->device)
		return CUDA_SUCCESS;
	FAULT("plain: the driver gave");
	life = contexts_life_current();
	if (!current_is_same(charge->current)) {
		log_warn("another context was made current within an allocation, so it is refused");
		charge_let_go(charge, cuda.cuMemFree_v2(pointer));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (charge->kind == CHARGE_MANAGED) {
		if (!everywhere_charge(charge)) {
			charge_let_go(charge, cuda.cuMemFree_v2(pointer));
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		flags |= HOLDING_EVERYWHERE;
	}
	if (enter(pointer, bytes, charge, life, flags, &is_charged) < 0) {
		log_error("no memory for our own tables, so an allocation is refused");
		if (flags & HOLDING_EVERYWHERE)
			everywhere_give_back(
				charge->device, (uint64_t)charge->units * REGION_UNIT_BYTES);
		charge_let_go(charge, cuda.cuMemFree_v2(pointer));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("plain: entered");
	if (is_charged)
		charge_take(charge);
	return CUDA_SUCCESS;
}

CUresult allocations_keep(CUdeviceptr pointer, uint64_t bytes, struct charge *charge)
{
	return keep(pointer, bytes, charge, 0);
}

CUresult allocations_keep_host_fallback(CUdeviceptr pointer, uint64_t bytes, struct charge *charge)
{
	return keep(pointer, allocations_worst_bytes(bytes), charge, HOLDING_HOST_FALLBACK);
}

/* Rows are padded to a multiple of this (H200, driver 580); it is the alignment of textures. */
#define PITCH_STEP_BYTES 512u

uint64_t allocations_pitched_bytes(uint64_t width_bytes, uint64_t height)
{
	uint64_t pitch = round_up_u64(width_bytes, PITCH_STEP_BYTES), bytes;

	return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

CUresult allocations_keep_pitched(
	CUdeviceptr pointer, uint64_t expected, uint64_t taken, struct charge *charge)
{
	struct device *device = charge->device;
	uint64_t since = charge->since, unnamed = charge->unnamed, current = charge->current;
	CUresult r;

	if (device && allocations_worst_bytes(taken) > allocations_worst_bytes(expected)) {
		charge_undo(charge);
		r = charge_reserve(device, allocations_worst_bytes(taken), CHARGE_PLAIN, charge);
		if (r != CUDA_SUCCESS) {
			if (cuda.cuMemFree_v2(pointer) != CUDA_SUCCESS)
				charge_anyway(device, allocations_worst_bytes(taken), CHARGE_PLAIN);
			return r;
		}
		charge->since = since;
		charge->unnamed = unnamed;
		charge->current = current;
	}
	return allocations_keep(pointer, taken, charge);
}

int allocations_keep_pooled(CUdeviceptr pointer, struct pool *pool, uint64_t since)
{
	return holding_put_pooled(pointer, pool, since);
}

int allocations_take(CUdeviceptr pointer, struct allocation *ret_allocation)
{
	ret_allocation->pointer = pointer;
	if (holding_take(HOLDING_POINTERS, pointer, &ret_allocation->holding) != 0)
		return ALLOCATIONS_E_UNKNOWN;
	FAULT("plain: taken out");
	return 0;
}

void allocations_put_back(const struct allocation *allocation)
{
	holding_put_back(HOLDING_POINTERS, allocation->pointer, &allocation->holding);
}

struct pool *allocations_pool(const struct allocation *allocation)
{
	const struct holding *h = &allocation->holding;

	return h->flags & HOLDING_POOLED ? h->pool : NULL;
}

bool allocations_is_host_fallback(const struct allocation *allocation)
{
	return allocation->holding.flags & HOLDING_HOST_FALLBACK;
}

bool allocations_falls_back(CUdeviceptr pointer)
{
	struct holding holding;

	return holding_get(HOLDING_POINTERS, pointer, &holding) == 0 &&
	       holding.flags & HOLDING_HOST_FALLBACK;
}

bool allocations_share(CUdeviceptr pointer, const struct shared_name *name)
{
	struct ipc_memory memory = {.name = *name, .fd = -1};
	unsigned shared;

	/* Another name than the first one, or another thread has freed it: its place may be other memory's by now. */
	return holding_share(HOLDING_POINTERS, pointer, &memory, HOLDING_KEY_ENDS, &shared) &&
	       ipc_is_named(shared, name);
}

bool allocations_is_to_be_watched(const struct allocation *allocation)
{
	const struct holding *h = &allocation->holding;

	return (h->flags & HOLDING_MAY_STAY || h->pins) && !(h->flags & HOLDING_POOLED);
}

uint64_t allocations_bytes(const struct allocation *allocation)
{
	const struct holding *h = &allocation->holding;

	if (h->flags & HOLDING_SHARED)
		return ipc_steps(h->shared) * MARK_STEP_BYTES;
	/* Of a chunk that others have a part in this one's part cannot be told from what is free. */
	return h->flags & HOLDING_IN_CHUNK ? CHUNK_BYTES : (uint64_t)h->units * REGION_UNIT_BYTES;
}

void allocations_give_back(const struct allocation *allocation)
{
	holding_give_back(allocation->pointer, &allocation->holding);
}

bool allocations_is_chunk_in_doubt(const struct allocation *allocation)
{
	return chunk_is_in_doubt(allocation->pointer, &allocation->holding);
}

void allocations_give_back_chunk(
	const struct allocation *allocation, const struct reconcile_chunk *before)
{
	const struct holding *h = &allocation->holding;

	if (reconcile_chunk_is_gone(state_device(h->device), before, CHUNK_BYTES))
		holding_give_back_whole(allocation->pointer, h);
	else
		holding_give_back(allocation->pointer, h);
}
