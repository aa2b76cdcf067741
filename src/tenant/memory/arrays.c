/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each array and mipmapped array was charged for.
 *
 * Two tables: arrays (key the handle, its lowest bit set for a mipmapped one; a the context; b the
 * charge, packed: units << 32 | flags | ordinal) and shelves, the shared chunks of each context (key
 * the context, a the small arrays, b the chunks << 32 | ordinal).
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/arrays.h"

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/memory/allocations.h"
#include "tenant/memory/array_size.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/guard.h"
#include "tenant/slice/table.h"
#include "tenant/memory/truth.h"

#define IS_SHARED   UINT64_C(0x10000)
#define IS_DEFERRED UINT64_C(0x20000)

static struct table arrays;
static struct table shelves;
static struct lock shelf_lock; /* reading and changing a shelf is one step */

static uint64_t key_of(const void *handle, bool is_mipmap)
{
	return (uintptr_t)handle | is_mipmap;
}

/* An array whose memory is mapped into it later: nothing to reserve, but to be known. */
static CUresult begin_deferred(struct array_plan *plan)
{
	struct device *device;
	CUresult r = state_current_device(&device);

	if (r == CUDA_SUCCESS)
		plan->charge = (struct charge){.device = device, .kind = CHARGE_ARRAY};
	return r;
}

CUresult arrays_begin(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level_count,
	struct array_plan *ret_plan)
{
	CUresult r, refusal = CUDA_SUCCESS;
	uint64_t bytes = 0;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&ret_plan->context);
	if (state_enter() == STATE_OPEN && array_size_is_deferred(descriptor))
		return begin_deferred(ret_plan);
	if (state_enter() == STATE_OPEN)
		bytes = array_size_ask(descriptor, level_count, &refusal);
	r = charge_reserve_current(allocations_worst_bytes(bytes), CHARGE_ARRAY, &ret_plan->charge);
	if (r != CUDA_SUCCESS)
		return refusal != CUDA_SUCCESS ? refusal : r;
	ret_plan->is_shared = bytes <= CHUNK_BYTES;
	if (ret_plan->is_shared)
		ret_plan->free_bytes = guard_free_bytes();
	return r;
}

void arrays_undo(struct array_plan *plan)
{
	charge_undo(&plan->charge);
}

/*
 * Changes a context's shelf by one array, one chunk or both, but not to more chunks than arrays. Returns
 * how many chunks it lost. Without memory for a new shelf its chunks stay charged.
 */
static uint64_t change_shelf(uint64_t context, uint64_t ordinal, int arrays_more, int chunks_more)
{
	struct table_entry shelf = {.key = context, .b = ordinal};
	uint64_t before, chunks;
	LOCK_SCOPE(&shelf_lock);

	if (table_get(&shelves, context, &shelf) != 0 && arrays_more <= 0)
		return 0;
	FAULT("array: shelf locked");
	before = chunks = shelf.b >> 32;
	shelf.a += (uint64_t)(int64_t)arrays_more;
	if (chunks_more > 0)
		chunks++;
	else if (chunks_more < 0 && chunks > 0)
		chunks--;
	if (chunks > shelf.a)
		chunks = shelf.a;
	shelf.b = chunks << 32 | ordinal;
	if (shelf.a == 0 ? table_take(&shelves, context, NULL) != 0
			 : table_put(&shelves, shelf) < 0)
		log_warn("a charge stays in the books until the process ends");
	return chunks < before ? before - chunks : 0;
}

bool arrays_keep(const void *handle, bool is_mipmap, struct array_plan *plan)
{
	struct charge *charge = &plan->charge;
	struct table_entry entry = {
		.key = key_of(handle, is_mipmap), .a = (uintptr_t)plan->context};
	uint64_t free_bytes;
	bool has_taken;

	if (!charge->device)
		return true;
	FAULT("array: the driver gave");
	entry.b = (uint64_t)charge->device->ordinal;
	if (plan->is_shared)
		entry.b |= IS_SHARED;
	else if (charge->units == 0)
		entry.b |= IS_DEFERRED;
	else
		entry.b |= (uint64_t)charge->units << 32;
	if (table_put(&arrays, entry) < 0) {
		log_error("no memory for our own tables, so an array is refused");
		return false;
	}
	FAULT("array: entered");
	if (!plan->is_shared) {
		charge_take(charge);
		return true;
	}
	free_bytes = guard_free_bytes();
	has_taken = free_bytes != plan->free_bytes || free_bytes == UINT64_MAX;
	change_shelf(entry.a, (uint64_t)charge->device->ordinal, 1, has_taken);
	if (has_taken)
		charge_take(charge);
	else
		charge_undo(charge);
	return true;
}

struct array_taken arrays_destroy_begin(const void *handle, bool is_mipmap)
{
	struct array_taken taken = {.key = 0};
	struct table_entry entry;

	if (table_take(&arrays, key_of(handle, is_mipmap), &entry) != 0)
		return taken;
	FAULT("array: taken out");
	taken = (struct array_taken){.key = entry.key, .context = entry.a, .charge = entry.b};
	if (entry.b & IS_SHARED)
		taken.free_bytes = guard_free_bytes();
	if (entry.b & IS_DEFERRED)
		taken.tiles = tiles_take(entry.key);
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

static void leave_shelf(const struct array_taken *taken, struct device *device)
{
	uint64_t ordinal = (uint64_t)device->ordinal;
	bool is_less = has_risen(device, taken->free_bytes);
	uint64_t chunks = change_shelf(taken->context, ordinal, -1, 0);

	if (!chunks && is_less && truth_spare_bytes(device) >= CHUNK_BYTES)
		chunks = change_shelf(taken->context, ordinal, 0, -1);
	if (chunks)
		charge_give_back(device, chunks * CHUNK_BYTES, CHARGE_ARRAY);
}

void arrays_destroy_end(const struct array_taken *taken, bool is_destroyed)
{
	struct table_entry entry = {.key = taken->key, .a = taken->context, .b = taken->charge};
	struct device *device;

	if (!taken->key)
		return;
	FAULT("array: the driver destroyed");
	if (taken->tiles)
		tiles_taken(taken->tiles, is_destroyed);
	if (!is_destroyed) {
		if (table_put(&arrays, entry) < 0)
			log_warn("a charge stays in the books until the process ends");
		return;
	}
	device = state_device((CUdevice)(taken->charge & 0xff));
	if (taken->charge & IS_SHARED)
		leave_shelf(taken, device);
	else if (taken->charge >> 32)
		charge_give_back(device, (taken->charge >> 32) * REGION_UNIT_BYTES, CHARGE_ARRAY);
}

void arrays_context_ended(struct device *device, CUcontext context)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_by_a(&arrays, (uintptr_t)context, &cursor, &entry) == 0) {
		if (entry.b >> 32)
			charge_give_back(device, (entry.b >> 32) * REGION_UNIT_BYTES, CHARGE_ARRAY);
		if (entry.b & IS_DEFERRED)
			tiles_taken(tiles_take(entry.key), true);
	}
	lock_enter(&shelf_lock);
	if (table_take(&shelves, (uintptr_t)context, &entry) != 0)
		entry.b = 0;
	lock_leave(&shelf_lock);
	if (entry.b >> 32)
		charge_give_back(device, (entry.b >> 32) * CHUNK_BYTES, CHARGE_ARRAY);
}

void arrays_reset_after_fork(void)
{
	table_forget(&arrays);
	table_forget(&shelves);
	shelf_lock = (struct lock)LOCK_INIT;
}
