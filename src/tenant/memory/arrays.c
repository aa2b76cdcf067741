/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each array and mipmapped array was charged for: the holdings of HOLDING_ARRAYS (key the handle, its
 * lowest bit set for a mipmapped one), and of HOLDING_SHELVES, the chunks that a context's small arrays share.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/arrays.h"

#include "base/fault.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/memory/allocations.h"
#include "tenant/memory/array_size.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/holding.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/reconcile.h"

#define SHELF_UNITS (CHUNK_BYTES / REGION_UNIT_BYTES)

/* An array whose memory is mapped into it later: nothing to reserve, but to be known. */
static CUresult begin_deferred(struct array_plan *plan)
{
	uint64_t current = current_since();
	struct device *device;
	CUresult r = state_current_device(&device);

	if (r == CUDA_SUCCESS)
		plan->charge = (struct charge){.device = device,
			.kind = CHARGE_ARRAY,
			.since = charge_since(),
			.current = current};
	return r;
}

CUresult arrays_begin(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level_count,
	struct array_plan *ret_plan)
{
	CUresult r, refusal = CUDA_SUCCESS;
	uint64_t bytes = 0;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	if (state_enter() == STATE_OPEN && array_size_is_deferred(descriptor))
		return begin_deferred(ret_plan);
	if (state_enter() == STATE_OPEN)
		bytes = array_size_ask(descriptor, level_count, &refusal);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_ARRAY, &ret_plan->charge);
	if (r != CUDA_SUCCESS)
		return refusal != CUDA_SUCCESS ? refusal : r;
	ret_plan->is_shared = bytes <= CHUNK_BYTES;
	if (ret_plan->is_shared) {
		ret_plan->traffic = charge_traffic();
		ret_plan->free_bytes = guard_free_bytes();
	}
	return r;
}

void arrays_undo(struct array_plan *plan)
{
	charge_undo(&plan->charge);
}

/* A context's shelf: one array, one chunk or both more or less, but never more chunks than arrays. */
struct shelf_change {
	uint64_t life;
	struct device *device;
	int arrays, chunks;
	uint32_t units_lost;
};

static void change(struct holding *shelf, void *context)
{
	struct shelf_change *c = context;
	uint32_t before = shelf->units;

	FAULT("array: shelf locked");
	shelf->life = c->life;
	shelf->device = (uint8_t)c->device->ordinal;
	shelf->kind = CHARGE_ARRAY;
	shelf->references += (uint32_t)c->arrays;
	if (c->chunks > 0)
		shelf->units += SHELF_UNITS;
	else if (c->chunks < 0 && shelf->units > 0)
		shelf->units -= SHELF_UNITS;
	if (shelf->units > shelf->references * SHELF_UNITS)
		shelf->units = shelf->references * SHELF_UNITS;
	c->units_lost = shelf->units < before ? before - shelf->units : 0;
}

/* How many units the shelf lost. Without memory for a new one its chunks stay charged. */
static uint32_t change_shelf(uint64_t life, struct device *device, int arrays, int chunks)
{
	struct shelf_change c = {
		.life = life, .device = device, .arrays = arrays, .chunks = chunks};

	/* A context that is not in the books never ends, so its arrays have the key of no life. */
	if (!holding_change(HOLDING_SHELVES, life ? life : UINT64_MAX, arrays > 0, change, &c) &&
		arrays > 0)
		log_warn("memory stays counted until the process ends");
	return c.units_lost;
}

/* Whether nobody of the slice can have given back meanwhile what the array took: no other call was under way, and no other process has any. */
static bool is_alone(const struct array_plan *plan)
{
	const struct device *device = plan->charge.device;

	return plan->traffic == charge_traffic() && (uint32_t)plan->traffic == 1 &&
	       ledger_used_bytes(state.region.file, device->entry) <= charge_held_bytes(device);
}

bool arrays_keep(const void *handle, bool is_mipmap, struct array_plan *plan)
{
	struct charge *charge = &plan->charge;
	struct device *device = charge->device;
	uint64_t free_bytes = UINT64_MAX, life;
	struct holding holding;
	bool has_taken;

	if (!device)
		return true;
	FAULT("array: the driver gave");
	life = contexts_life_current();
	if (plan->is_shared)
		free_bytes = guard_free_bytes();
	if (!current_is_same(charge->current)) {
		log_warn("another context was made current while an array was made, so it is "
			 "refused");
		return false;
	}
	holding = holding_of(charge, life, 0);
	if (plan->is_shared) {
		holding.units = 0;
		holding.flags = HOLDING_SHELVED;
	} else if (holding.units == 0) {
		holding.flags = HOLDING_DEFERRED;
	}
	if (holding_put(HOLDING_ARRAYS, tiles_resource(handle, is_mipmap), holding, charge->since) <
		0) {
		log_error("no memory for our own tables, so an array is refused");
		return false;
	}
	FAULT("array: entered");
	if (!plan->is_shared) {
		charge_take(charge);
		return true;
	}
	has_taken = free_bytes != plan->free_bytes || free_bytes == UINT64_MAX;
	change_shelf(life, device, 1, has_taken);
	if (has_taken)
		charge_take(charge);
	else if (is_alone(plan) || reconcile_look_for_more(device))
		charge_undo(charge);
	else
		reconcile_doubt(device, charge_take(charge), CHARGE_ARRAY);
	return true;
}

struct array_taken arrays_destroy_begin(const void *handle, bool is_mipmap)
{
	struct array_taken taken = {.tiles = NULL};

	if (holding_end_begin(HOLDING_ARRAYS, tiles_resource(handle, is_mipmap), &taken.end) != 0) {
		taken.is_stray = true;
		charge_stray_begins();
		return taken;
	}
	FAULT("array: taken out");
	if (taken.end.holding.flags & HOLDING_SHELVED)
		taken.free_bytes = guard_free_bytes();
	if (taken.end.holding.flags & HOLDING_DEFERRED)
		taken.tiles = tiles_take(taken.end.key);
	return taken;
}

/* Whether the free memory that we saw rising is that of the array's device. */
static bool has_risen(const struct device *device, uint64_t before)
{
	uint64_t now = guard_free_bytes();
	struct device *current;

	return now != UINT64_MAX && now > before &&
	       state_current_device(&current) == CUDA_SUCCESS && current == device;
}

static void leave_shelf(const struct array_taken *taken)
{
	struct device *device = state_device(taken->end.holding.device);
	uint64_t life = taken->end.holding.life;
	bool is_less = has_risen(device, taken->free_bytes);
	uint32_t units = change_shelf(life, device, -1, 0);

	if (!units && is_less && reconcile_spare_bytes(device) >= CHUNK_BYTES)
		units = change_shelf(life, device, 0, -1);
	if (units)
		charge_give_back(device, (uint64_t)units * REGION_UNIT_BYTES, CHARGE_ARRAY);
	else
		reconcile_look_for_less(device);
}

void arrays_destroy_end(const struct array_taken *taken, bool is_destroyed)
{
	FAULT("array: the driver destroyed");
	if (taken->is_stray)
		charge_stray_ends(NULL);
	tiles_taken(taken->tiles, is_destroyed);
	if (is_destroyed && taken->end.holding.flags & HOLDING_SHELVED)
		leave_shelf(taken);
	holding_end_done(&taken->end, is_destroyed);
}
