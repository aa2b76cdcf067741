/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each pointer was charged for.
 *
 * A table entry: key the pointer, a the context it was allocated in (or the pool it came from), b the
 * charge, packed: units << 32 | kind << 8 | ordinal, and IS_SHARED where the charge is its chunk's,
 * IS_STAND_IN where it is managed memory that the program does not know to be managed, MAY_STAY where
 * something else may keep it. Where other processes can open the memory (IS_JOINT) the joint stands in
 * the place of the units.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/allocations.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/contexts.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/shared.h"
#include "tenant/slice/table.h"

#define IS_SHARED   UINT64_C(0x10000)
#define IS_POOLED   UINT64_C(0x20000)
#define IS_STAND_IN UINT64_C(0x40000)
#define IS_JOINT    UINT64_C(0x80000)
#define MAY_STAY    UINT64_C(0x100000)

static struct table pointers;
static struct table chunks;    /* key: address / CHUNK_BYTES; a: tenants */
static struct lock share_lock; /* one thread at a time makes joints of pointers */

uint64_t allocations_worst_bytes(uint64_t bytes)
{
	return round_up_u64(bytes, CHUNK_BYTES);
}

static uint64_t pack(const struct charge *charge, uint64_t units, uint64_t flags)
{
	return units << 32 | flags | (uint64_t)charge->kind << 8 |
	       (uint64_t)charge->device->ordinal;
}

static bool is_in_one_chunk(CUdeviceptr pointer, uint64_t bytes)
{
	return bytes < CHUNK_BYTES && pointer / CHUNK_BYTES == (pointer + bytes - 1) / CHUNK_BYTES;
}

static void give_back(const struct table_entry *entry)
{
	struct device *device = state_device((CUdevice)(entry->b & 0xff));
	enum charge_kind kind = (enum charge_kind)(entry->b >> 8 & 0xff);
	uint64_t bytes = (entry->b >> 32) * REGION_UNIT_BYTES;
	struct table_entry chunk;

	if (entry->b & IS_POOLED)
		return;
	if (entry->b & IS_JOINT) {
		shared_let_go((unsigned)(entry->b >> 32), true);
		bytes = 0;
	}
	if (entry->b & IS_SHARED) {
		if (table_count_down(&chunks, entry->key / CHUNK_BYTES, &chunk) != 0 || chunk.a > 0)
			return;
		bytes = CHUNK_BYTES;
	}
	FAULT("plain: the driver freed");
	charge_give_back(device, bytes, kind);
}

/*
 * A pointer that is entered already is of a context that another thread is destroying: the driver has
 * freed what was there, or it would not give the address out again.
 */
static int put(struct table_entry entry)
{
	struct table_entry gone;
	int r = table_replace(&pointers, entry, &gone);

	if (r == 0 && gone.b)
		give_back(&gone);
	return r;
}

/* Enters the pointer, and its chunk where it shares one; *ret_is_charged says whose the charge is. */
static int enter(CUdeviceptr pointer, uint64_t bytes, const struct charge *charge, uint64_t flags,
	bool *ret_is_charged)
{
	struct table_entry entry = {.key = pointer}, chunk = {.a = 1};
	bool is_shared = is_in_one_chunk(pointer, bytes);
	CUcontext context = NULL;

	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	entry.a = (uintptr_t)contexts_owner(context);
	entry.b = pack(charge, is_shared ? 0 : charge->units, flags | (is_shared ? IS_SHARED : 0));
	if (put(entry) < 0)
		return -1;
	FAULT("plain: pointer entered");
	if (is_shared && table_count_up(&chunks, pointer / CHUNK_BYTES, true, &chunk) < 0) {
		if (table_take(&pointers, pointer, NULL) != 0)
			log_debug("a pointer was freed while it was being entered");
		return -1;
	}
	*ret_is_charged = !is_shared || chunk.a == 1;
	return 0;
}

static CUresult keep(CUdeviceptr pointer, uint64_t bytes, struct charge *charge, uint64_t flags)
{
	bool is_charged;

	if (!charge->device)
		return CUDA_SUCCESS;
	FAULT("plain: the driver gave");
	if (enter(pointer, bytes, charge, flags, &is_charged) < 0) {
		log_error("no memory for our own tables, so an allocation is refused");
		cuda.cuMemFree_v2(pointer);
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

CUresult allocations_keep_stand_in(CUdeviceptr pointer, uint64_t bytes, struct charge *charge)
{
	return keep(pointer, allocations_worst_bytes(bytes), charge, IS_STAND_IN);
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
	CUresult r;

	if (device && allocations_worst_bytes(taken) > allocations_worst_bytes(expected)) {
		charge_undo(charge);
		r = charge_reserve(device, allocations_worst_bytes(taken), CHARGE_PLAIN, charge);
		if (r != CUDA_SUCCESS) {
			cuda.cuMemFree_v2(pointer);
			return r;
		}
	}
	return allocations_keep(pointer, taken, charge);
}

int allocations_keep_pooled(CUdeviceptr pointer, struct pool *pool)
{
	return put((struct table_entry){.key = pointer, .a = (uintptr_t)pool, .b = IS_POOLED});
}

int allocations_take(CUdeviceptr pointer, struct allocation *ret_allocation)
{
	struct table_entry entry;

	if (table_take(&pointers, pointer, &entry) != 0)
		return ALLOCATIONS_E_UNKNOWN;
	FAULT("plain: taken out");
	*ret_allocation = (struct allocation){.pointer = entry.key, .a = entry.a, .b = entry.b};
	return 0;
}

void allocations_put_back(const struct allocation *allocation)
{
	struct table_entry entry = {
		.key = allocation->pointer, .a = allocation->a, .b = allocation->b};

	/* Its place was freed a moment ago, so this needs no memory unless others took it since. */
	if (table_put(&pointers, entry) < 0)
		log_warn("a charge stays in the books until the process ends");
}

struct pool *allocations_pool(const struct allocation *allocation)
{
	return allocation->b & IS_POOLED ? (struct pool *)(uintptr_t)allocation->a : NULL;
}

bool allocations_is_stand_in(const struct allocation *allocation)
{
	return allocation->b & IS_STAND_IN;
}

bool allocations_stands_in(CUdeviceptr pointer)
{
	struct table_entry entry;

	return table_get(&pointers, pointer, &entry) == 0 && entry.b & IS_STAND_IN;
}

/* Of a chunk that others have a part in one more is charged, so that nobody's part is uncharged. */
static bool charge_for_share(struct device *device, uint64_t b, uint64_t *ret_bytes)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;

	*ret_bytes = (b >> 32) * REGION_UNIT_BYTES;
	if (!(b & IS_SHARED))
		return true;
	if (charge_reserve(device, CHUNK_BYTES, (enum charge_kind)(b >> 8 & 0xff), &charge) !=
		CUDA_SUCCESS)
		return false;
	*ret_bytes = charge_take(&charge);
	return true;
}

void allocations_share(CUdeviceptr pointer, uint64_t key)
{
	struct shared_memory memory = {.key = key, .fd = -1};
	struct table_entry entry;
	unsigned joint;
	LOCK_SCOPE(&share_lock);

	if (table_get(&pointers, pointer, &entry) != 0 || entry.b & (IS_POOLED | IS_JOINT))
		return;
	memory.device = state_device((CUdevice)(entry.b & 0xff));
	memory.kind = (enum charge_kind)(entry.b >> 8 & 0xff);
	if (!charge_for_share(memory.device, entry.b, &memory.bytes))
		return;
	if (!shared_make(&memory, &joint)) {
		if (entry.b & IS_SHARED)
			charge_give_back(memory.device, memory.bytes, memory.kind);
		return;
	}
	if (table_change_b(&pointers, pointer, entry.b,
		    (uint64_t)joint << 32 | (uint32_t)entry.b | IS_JOINT) == 0)
		return;
	/* Freed meanwhile, by a program that is wrong: its free gives back what the joint has now. */
	charge_anyway(memory.device, memory.bytes, memory.kind);
	shared_let_go(joint, true);
}

void allocations_may_stay(CUdeviceptr pointer)
{
	struct table_entry entry;

	while (table_get(&pointers, pointer, &entry) == 0 &&
		table_change_b(&pointers, pointer, entry.b, entry.b | MAY_STAY) != 0)
		;
}

bool allocations_is_to_be_watched(const struct allocation *allocation)
{
	return allocation->b & MAY_STAY && !(allocation->b & IS_POOLED);
}

uint64_t allocations_bytes(const struct allocation *allocation)
{
	/* Of a shared chunk, or of a joint, this one's part cannot be told from what is free. */
	return allocation->b & (IS_SHARED | IS_JOINT) ? CHUNK_BYTES
						      : (allocation->b >> 32) * REGION_UNIT_BYTES;
}

CUcontext allocations_context(const struct allocation *allocation)
{
	return (CUcontext)(uintptr_t)allocation->a;
}

void allocations_give_back(const struct allocation *allocation)
{
	give_back(&(struct table_entry){
		.key = allocation->pointer, .a = allocation->a, .b = allocation->b});
}

void allocations_context_ended(struct device *device, CUcontext context)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_by_a(&pointers, (uintptr_t)context, &cursor, &entry) == 0)
		give_back(&entry);
}

void allocations_reset_after_fork(void)
{
	table_forget(&pointers);
	table_forget(&chunks);
	share_lock = (struct lock)LOCK_INIT;
}
