/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve of a memory pool. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * A pool owns addresses for as much as its device holds, and takes memory for them in steps of
 * 32 MiB: an allocation lies where the first run of free or untaken addresses is long enough, so it
 * may span steps taken at different times. That is what was measured: 20 MiB three times fill
 * 64 MiB. A freed range may be used again by work that starts after the free, whichever stream.
 */

static struct range **bucket_of(const struct pool *pool, uint64_t offset)
{
	uint64_t key = offset / HEAP_GRAIN;

	return &pool->bucket[(key ^ key >> 12) % POOL_BUCKETS];
}

static void link_idle(struct pool *pool, struct range *range)
{
	range->prev_idle = NULL;
	range->next_idle = pool->idle;
	if (pool->idle)
		pool->idle->prev_idle = range;
	pool->idle = range;
}

static void unlink_idle(struct pool *pool, struct range *range)
{
	if (range->prev_idle)
		range->prev_idle->next_idle = range->next_idle;
	else
		pool->idle = range->next_idle;
	if (range->next_idle)
		range->next_idle->prev_idle = range->prev_idle;
}

static bool is_idle(const struct range *range)
{
	return range->state == RANGE_FREE || range->state == RANGE_PENDING;
}

static bool is_vacant(const struct range *range)
{
	return range->state == RANGE_FREE || range->state == RANGE_HOLE;
}

/* Removes a vacant range from all lists. */
static void drop(struct pool *pool, struct range *range)
{
	if (is_idle(range))
		unlink_idle(pool, range);
	if (range->prev)
		range->prev->next = range->next;
	else
		pool->first = range->next;
	if (range->next)
		range->next->prev = range->prev;
	free(range);
}

/* A new range behind `before` (NULL: the first). */
static struct range *insert(struct pool *pool, struct range *before, enum range_state state,
	uint64_t offset, uint64_t length)
{
	struct range *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	range->state = state;
	range->offset = offset;
	range->length = length;
	range->prev = before;
	range->next = before ? before->next : pool->first;
	if (range->next)
		range->next->prev = range;
	if (before)
		before->next = range;
	else
		pool->first = range;
	if (is_idle(range))
		link_idle(pool, range);
	return range;
}

static int start(struct pool *pool)
{
	uint64_t step = driver.board->pool_step_bytes;
	uint64_t steps = (driver.board->total_bytes + step - 1) / step;

	pool->size = steps * step;
	pool->is_committed = calloc(steps, 1);
	pool->bucket = calloc(POOL_BUCKETS, sizeof(*pool->bucket));
	if (!pool->is_committed || !pool->bucket ||
		address_map(pool->size, ADDRESS_UNIT, PROT_NONE, &pool->base) != 0)
		return -1;
	return insert(pool, NULL, RANGE_HOLE, 0, pool->size) ? 0 : -1;
}

/*
 * Makes the run of vacant ranges around `range` anew, from which steps are taken and which not:
 * neighbours join, holes appear and go. Short of memory it leaves less vacant, never more.
 */
static void rebuild(struct pool *pool, struct range *range)
{
	uint64_t step = driver.board->pool_step_bytes;
	struct range *before;
	uint64_t offset, end;
	bool is_touched = false;

	while (range->prev && is_vacant(range->prev))
		range = range->prev;
	before = range->prev;
	offset = range->offset;
	end = offset;
	while (range && is_vacant(range)) {
		struct range *next = range->next;

		end = range->offset + range->length;
		is_touched |= range->is_touched;
		drop(pool, range);
		range = next;
	}
	while (offset < end) {
		bool is_committed = pool->is_committed[offset / step] != 0;
		uint64_t stop = offset;

		do {
			stop = (stop / step + 1) * step;
			if (stop >= pool->step_end * step && !is_committed)
				stop = end;
		} while (stop < end && (pool->is_committed[stop / step] != 0) == is_committed);
		if (stop > end)
			stop = end;
		range = insert(pool, before, is_committed ? RANGE_FREE : RANGE_HOLE, offset,
			stop - offset);
		if (range) {
			range->is_touched = is_touched && is_committed;
			before = range;
		}
		offset = stop;
	}
}

static void commit_step(struct pool *pool, uint64_t step_index, bool is_committed)
{
	uint64_t step = driver.board->pool_step_bytes;
	CUdeviceptr base = pool->base + step_index * step;

	if (!is_committed)
		madvise((void *)(uintptr_t)base, step, MADV_DONTNEED);
	mprotect((void *)(uintptr_t)base, step, is_committed ? PROT_READ | PROT_WRITE : PROT_NONE);
	pool->is_committed[step_index] = is_committed;
	if (pool->step_end <= step_index)
		pool->step_end = step_index + 1;
	/* Addresses keep their owner when a step goes: nothing is found there then. */
	if (is_committed)
		address_set_owner(base, step, &pool->owner);
}

static bool take_bytes(const struct pool *pool, uint64_t bytes)
{
	if (pool->kept > 0)
		return machine_kept_grow(driver.machine, pool->kept - 1, bytes) == 0;
	return machine_grow(driver.machine, pool->device->index, pool_kind(pool), bytes) == 0;
}

/* Takes the steps under [offset, offset + need) that are not there. Returns whether they are. */
static bool grow(struct pool *pool, uint64_t offset, uint64_t need)
{
	uint64_t step = driver.board->pool_step_bytes;
	uint64_t missing = 0;

	for (uint64_t i = offset / step; i <= (offset + need - 1) / step; i++)
		missing += pool->is_committed[i] ? 0 : step;
	if (pool->reserved + missing > pool->max_bytes || !take_bytes(pool, missing))
		return false;
	for (uint64_t i = offset / step; i <= (offset + need - 1) / step; i++) {
		if (!pool->is_committed[i])
			commit_step(pool, i, true);
	}
	pool->reserved += missing;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return true;
}

/* The first run of vacant ranges that is long enough, or NULL. */
static struct range *find_run(struct pool *pool, uint64_t need)
{
	struct range *run = NULL;
	uint64_t length = 0;

	for (struct range *range = pool->first; range; range = range->next) {
		if (!is_vacant(range)) {
			run = NULL;
			length = 0;
			continue;
		}
		if (!run)
			run = range;
		length += range->length;
		if (length >= need)
			return run;
	}
	return NULL;
}

/* The first range that is free, or will be before `ready_ns`. */
static struct range *find_idle(struct pool *pool, uint64_t need, uint64_t ready_ns)
{
	struct range *first = NULL;

	for (struct range *range = pool->idle; range; range = range->next_idle) {
		if (range->length >= need &&
			(range->state == RANGE_FREE || range->free_at_ns <= ready_ns) &&
			(!first || range->offset < first->offset))
			first = range;
	}
	return first;
}

static CUresult use(
	struct pool *pool, struct range *range, uint64_t need, size_t bytes, CUdeviceptr *ret_base)
{
	struct range **bucket = bucket_of(pool, range->offset);

	if (range->length > need) {
		struct range *rest = insert(
			pool, range, range->state, range->offset + need, range->length - need);

		if (!rest)
			return CUDA_ERROR_OUT_OF_MEMORY;
		rest->free_at_ns = range->free_at_ns;
		rest->is_touched = range->is_touched;
		range->length = need;
		if (range->state == RANGE_PENDING) {
			rest->bytes = range->bytes > need ? range->bytes - need : 0;
			range->bytes -= rest->bytes;
			pool->pending++;
		}
	}
	unlink_idle(pool, range);
	if (range->state == RANGE_PENDING) {
		pool->pending--;
		pool->used -= range->bytes;
	}
	range->state = RANGE_USED;
	range->bytes = bytes;
	range->next_hashed = *bucket;
	*bucket = range;
	pool->live++;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*ret_base = pool->base + range->offset;
	return CUDA_SUCCESS;
}

CUresult pool_take(struct pool *pool, size_t bytes, struct stream *stream, CUdeviceptr *ret_base)
{
	uint64_t need = (bytes + HEAP_GRAIN - 1) / HEAP_GRAIN * HEAP_GRAIN;
	uint64_t now = timeline_now(stream->context->device);
	uint64_t ready, offset;
	struct range *range;

	if (bytes > driver.board->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pool->base == 0 && start(pool) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ready = timeline_ready_ns(stream, now);
	if (pool->pending > 0)
		pool_finish(pool, now);
	range = find_idle(pool, need, ready);
	if (!range) {
		range = find_run(pool, need);
		if (!range || !grow(pool, range->offset, need))
			return CUDA_ERROR_OUT_OF_MEMORY;
		offset = range->offset;
		rebuild(pool, range);
		for (range = pool->first; range && range->offset != offset; range = range->next)
			;
		if (!range || range->state != RANGE_FREE || range->length < need)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return use(pool, range, need, bytes, ret_base);
}

struct range *pool_find_used(struct pool *pool, CUdeviceptr base)
{
	uint64_t offset = base - pool->base;
	struct range *range = *bucket_of(pool, offset);

	while (range && range->offset != offset)
		range = range->next_hashed;
	return range;
}

/* A range that became free joins its free neighbours. */
static void join(struct pool *pool, struct range *range)
{
	struct range *before = range->prev, *after = range->next;

	if (after && after->state == RANGE_FREE) {
		range->length += after->length;
		range->is_touched |= after->is_touched;
		drop(pool, after);
	}
	if (before && before->state == RANGE_FREE) {
		before->length += range->length;
		before->is_touched |= range->is_touched;
		drop(pool, range);
	}
}

void pool_give(struct pool *pool, struct range *range, uint64_t free_at_ns)
{
	struct range **link = bucket_of(pool, range->offset);

	while (*link != range)
		link = &(*link)->next_hashed;
	*link = range->next_hashed;
	pool->live--;
	link_idle(pool, range);
	if (free_at_ns > timeline_now(pool->device)) {
		range->state = RANGE_PENDING;
		range->free_at_ns = free_at_ns;
		pool->pending++;
		return;
	}
	pool->used -= range->bytes;
	range->state = RANGE_FREE;
	join(pool, range);
}

void pool_finish(struct pool *pool, uint64_t now_ns)
{
	struct range *range = pool->first;

	while (range && pool->pending > 0) {
		struct range *next = range->next;

		if (range->state == RANGE_PENDING && range->free_at_ns <= now_ns) {
			pool->pending--;
			pool->used -= range->bytes;
			range->state = RANGE_FREE;
			/* The next one may be joined away; a pending one never is. */
			while (next && next->state == RANGE_FREE)
				next = next->next;
			join(pool, range);
		}
		range = next;
	}
}

/* Uncommits the steps that lie in this free range, from the end. Returns whether any did. */
static bool trim_range(struct pool *pool, const struct range *range, uint64_t keep_bytes)
{
	uint64_t step = driver.board->pool_step_bytes;
	uint64_t first = (range->offset + step - 1) / step;
	uint64_t end = (range->offset + range->length) / step;
	bool is_trimmed = false;

	while (end > first && pool->reserved >= step && pool->reserved - step >= keep_bytes) {
		commit_step(pool, --end, false);
		pool->reserved -= step;
		machine_shrink(driver.machine, pool->device->index, pool_kind(pool), step);
		is_trimmed = true;
	}
	return is_trimmed;
}

void pool_trim(struct pool *pool, uint64_t keep_bytes)
{
	struct range *range = pool->first;

	/* Measured: what others may have imported stays. */
	if (pool->reserved <= keep_bytes || pool->kept > 0)
		return;
	while (range && pool->reserved > keep_bytes) {
		if (range->state == RANGE_FREE && trim_range(pool, range, keep_bytes)) {
			rebuild(pool, range);
			range = pool->first;
			continue;
		}
		range = range->next;
	}
}

void pool_forget_ranges(struct pool *pool)
{
	if (pool->base == 0)
		return;
	while (pool->first)
		drop(pool, pool->first);
	address_set_owner(pool->base, pool->step_end * driver.board->pool_step_bytes, NULL);
	address_unmap(pool->base, pool->size);
	free(pool->is_committed);
	free(pool->bucket);
	pool->base = 0;
}
