/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of stream-ordered memory, and the one of each device's graphs.
 *
 * The driver says nothing of a pool that it was told to destroy, though it holds memory until the last of it is
 * freed and every stream has come to that. So a pool that the program destroys is destroyed in the driver when it
 * holds nothing: until then it can be asked. One that is not on a device is destroyed when no allocation from it is under way: the
 * driver may give its handle to a device's before that is there.
 */
#include "tenant/memory/pools.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "tenant/memory/allocations.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/deferred_free.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pool_reading.h"

/* Longest wait for a trim of ours in another thread. */
#define USERS_WAIT_NS 100000000u

/* Longest wait at the quota's edge for frees that the stream has not reached yet. */
#define EDGE_WAIT_NS 50000000u

/* Longest wait for a launch or a trim in another thread. */
#define STILL_WAIT_NS 50000000u

static _Atomic bool some_are_dirty;

/*
 * The handle, for one trim; NULL where the driver has destroyed the pool. Its destroyer first takes the handle
 * away and then waits for the users, and both are sequentially consistent: either we see no handle, or
 * we are seen as a user.
 */
static CUmemoryPool hold(struct pool *p)
{
	CUmemoryPool handle;

	atomic_fetch_add(&p->users, 1);
	handle = atomic_load(&p->asked);
	if (!handle)
		atomic_fetch_sub(&p->users, 1);
	return handle;
}

static void let_go(struct pool *p)
{
	atomic_fetch_sub(&p->users, 1);
}

/* The next synchronization reads it again. */
static void mark_dirty(struct pool *p)
{
	/* pairs with the exchanges in pools_synchronized(): a thread that sees the second sees the first */
	atomic_store_explicit(&p->is_dirty, true, memory_order_release);
	atomic_store_explicit(&some_are_dirty, true, memory_order_release);
}

/* While a thread captures, what we ask the driver for ourselves must not end its capture. */
static CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode)
{
	if (!cuda.cuThreadExchangeStreamCaptureMode ||
		cuda.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		return CU_STREAM_CAPTURE_MODE_RELAXED;
	return mode;
}

/* A launch that was promised to take no more needs what is there, so it is not waited for. */
static void trim(struct pool *p, CUmemoryPool handle)
{
	if (!pool_is_of_graphs(p)) {
		cuda.cuMemPoolTrimTo(handle, 0);
	} else if (cuda.cuDeviceGraphMemTrim && lock_try(&p->still)) {
		cuda.cuDeviceGraphMemTrim(p->device->ordinal);
		pool_reading_renew(p);
		lock_leave(&p->still);
	}
}

/* Unused memory of the pool goes back to the device. */
static void trim_one(struct pool *p)
{
	CUmemoryPool handle = hold(p);

	if (!handle)
		return;
	trim(p, handle);
	FAULT("pool: trimmed");
	let_go(p);
	pool_reading_renew(p);
}

/* No thread begins to use it any more, but for those that wait until it is known. */
static bool are_users_gone(const struct pool *p)
{
	uint64_t deadline = clock_now_ns() + USERS_WAIT_NS;
	struct timespec pause = {.tv_nsec = 20000};

	while (atomic_load(&p->users) > 0 && clock_now_ns() < deadline)
		nanosleep(&pause, NULL);
	return atomic_load(&p->users) == 0;
}

/*
 * The handle of a pool that the program has destroyed and that holds nothing of a device; from now on none of our own
 * questions uses it. NULL: not now. An allocation counts as under way before it reads the handle that the
 * program has taken away before, and both are sequentially consistent; and what is allocated, or is to be freed
 * by a stream that has not got there, is held.
 */
static CUmemoryPool take_empty(struct pool *p)
{
	CUmemoryPool handle;
	uint64_t held;

	lock_enter(&p->lock);
	handle = atomic_load(&p->asked);
	if (!handle || atomic_load(&p->handle) || atomic_load(&p->under_way) > 0 ||
		(p->device && (!pool_reading_ask(p, handle, &held) || held > 0)))
		handle = NULL;
	else
		atomic_store(&p->asked, NULL);
	lock_leave(&p->lock);
	if (handle && !are_users_gone(p)) {
		atomic_store(&p->asked, handle);
		return NULL;
	}
	return handle;
}

/* Of a pool that the program has destroyed: the driver does, too, once nothing is in it. */
static void finish(struct pool *p)
{
	CUstreamCaptureMode mode = exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	CUmemoryPool empty;

	if (p->device)
		trim_one(p);
	empty = take_empty(p);
	FAULT("pool: without handle");
	if (empty)
		cuda.cuMemPoolDestroy(empty);
	exchange_mode(mode);
	if (empty)
		pool_reading_renew(p);
	else
		mark_dirty(p);
}

/* Reads it, and brings it to its end where the program has destroyed it. */
static void look_at(struct pool *p)
{
	if (p->may_end && !atomic_load(&p->handle) && atomic_load(&p->asked))
		finish(p);
	else
		pool_reading_renew(p);
}

void pools_collect(struct device *device)
{
	for (struct pool *p = pool_list_first(); p; p = p->next)
		if (p->device == device)
			look_at(p);
}

/* Unused memory goes back to the device, as the driver itself does when the card is full. */
void pools_trim(struct device *device)
{
	CUstreamCaptureMode mode = exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);

	for (struct pool *p = pool_list_first(); p; p = p->next)
		if (p->device == device)
			trim_one(p);
	exchange_mode(mode);
}

/*
 * Either the pool's destroyer sees the allocation as under way, or its handle is seen to be gone here: each writes
 * its word before it reads the other's. A device's own pool is never destroyed.
 */
struct pool *pools_begin(CUmemoryPool handle)
{
	struct pool *p = pool_list_find_anywhere(handle);

	if (!p || !p->may_end)
		return p;
	atomic_fetch_add(&p->under_way, 1);
	if (atomic_load(&p->handle) == handle)
		return p;
	pools_end(p);
	return NULL;
}

void pools_end(struct pool *pool)
{
	if (!pool->may_end)
		return;
	atomic_fetch_sub(&pool->under_way, 1);
	if (!pools_is_gone(pool))
		return;
	if (pool->device)
		mark_dirty(pool);
	else
		look_at(pool);
}

bool pools_is_gone(const struct pool *pool)
{
	return !atomic_load(&pool->handle);
}

bool pools_is_ended(CUmemoryPool handle)
{
	struct pool *p = handle ? pool_list_find_asked(handle) : NULL;

	return p && pools_is_gone(p);
}

/* The driver has destroyed the pool. */
static void forget(struct pool *p, CUmemoryPool handle)
{
	CUmemoryPool asked = handle;
	LOCK_SCOPE(&p->lock);

	atomic_compare_exchange_strong(&p->handle, &handle, NULL);
	atomic_compare_exchange_strong(&p->asked, &asked, NULL);
}

int pools_add(CUmemoryPool handle, struct device *device)
{
	LOCK_SCOPE(&pool_list_lock);
	struct pool *there = pool_list_find_asked(handle), *p;

	/* Another thread was faster: it knew the handle before the driver gave it out. */
	if (there && there->device == device && !pools_is_gone(there))
		return 0;
	p = pool_list_enter(handle, device, true);
	if (!p)
		return -ENOMEM;
	/* The driver gives a handle out again when its pool is gone. What is in it is read before it is forgotten. */
	if (there) {
		pool_reading_renew(p);
		forget(there, handle);
		mark_dirty(there);
	}
	return 0;
}

CUresult pools_destroy(CUmemoryPool handle)
{
	struct pool *p = handle ? pool_list_find_made(handle) : NULL;
	CUmemoryPool expected = handle;
	CUresult r;

	/* One that nobody knows yet may be used when it is known: the driver must not end it before. */
	if (handle && !p && pool_list_is_any_coming())
		return CUDA_ERROR_NOT_READY;
	if (p && p->may_end) {
		pool_reading_renew(p);
		if (!atomic_compare_exchange_strong(&p->handle, &expected, NULL))
			return CUDA_ERROR_INVALID_VALUE;
		finish(p);
		return CUDA_SUCCESS;
	}
	r = cuda.cuMemPoolDestroy(handle);
	if (p && r == CUDA_SUCCESS)
		forget(p, handle);
	return r;
}

/* Waits, for a short time, until the stream has reached the frees that are queued on it. */
static void wait_for_frees(CUstream stream)
{
	CUstreamCaptureMode mode = exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	uint64_t deadline = clock_now_ns() + EDGE_WAIT_NS;
	struct timespec pause = {.tv_nsec = 100000};

	while (cuda.cuStreamQuery && cuda.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY &&
		clock_now_ns() < deadline)
		nanosleep(&pause, NULL);
	exchange_mode(mode);
}

/*
 * What a pool that others import grows by is in its shared allocation before the driver has it. An allocation counts as unshared before
 * it looks whether the pool is shared, and pools_share() has the pool shared before it waits for these: so none of them is under way
 * when others can have the pool.
 */
static CUresult reserve(struct pool *p, uint64_t growth, struct charge *ret_charge)
{
	CUresult r = charge_reserve(p->device, growth, p->kind, ret_charge);
	uint32_t shared;

	/* The driver exports none that the program has not made. */
	if (r != CUDA_SUCCESS || !p->may_end)
		return r;
	atomic_fetch_add(&p->unshared, 1);
	shared = atomic_load(&p->shared);
	if (LIKELY(!shared))
		return r;
	atomic_fetch_sub(&p->unshared, 1);
	ipc_grow(shared - 1, (uint64_t)ret_charge->units * REGION_UNIT_BYTES);
	ret_charge->shared = shared;
	FAULT("pool: reserved for all");
	return CUDA_SUCCESS;
}

CUresult pools_reserve(
	struct pool *pool, uint64_t bytes, CUstream stream, struct charge *ret_charge)
{
	uint64_t growth = round_up_u64(bytes, POOL_STEP_BYTES);
	CUresult r;

	if (!pool->device)
		return CUDA_SUCCESS;
	r = reserve(pool, growth, ret_charge);
	/* relaxed: a hint; graphs free as they run, unannounced */
	if (r == CUDA_SUCCESS ||
		(!pool_is_of_graphs(pool) && !deferred_free_is_any() &&
			!atomic_load_explicit(&pool->is_dirty, memory_order_relaxed)))
		return r;
	wait_for_frees(stream);
	return reserve(pool, growth, ret_charge);
}

static bool is_unshared(const struct pool *p, const struct charge *charge)
{
	return p->may_end && charge->device && !charge->shared;
}

void pools_cancel(struct pool *pool, struct charge *charge)
{
	if (is_unshared(pool, charge))
		atomic_fetch_sub(&pool->unshared, 1);
	else
		(void)pool_reading_settle(charge, 0);
}

void pools_keep(struct pool *pool, struct charge *charge)
{
	bool is_its_own = is_unshared(pool, charge);

	if (LIKELY(charge->device && pool_reading_is_same(pool))) {
		(void)pool_reading_settle(charge, 0);
		charge_undo(charge);
	} else {
		pool_reading_book(pool, charge);
	}
	if (is_its_own)
		atomic_fetch_sub(&pool->unshared, 1);
}

uint64_t pools_read(struct pool *pool, uint64_t *ret_losses)
{
	pool_reading_renew(pool);
	*ret_losses = atomic_load(&pool->losses);
	return pool->held_bytes;
}

bool pools_hold_still(struct pool *pool)
{
	uint64_t deadline = clock_now_ns() + STILL_WAIT_NS;
	struct timespec pause = {.tv_nsec = 20000};
	bool is_held = lock_try(&pool->still);

	while (!is_held && clock_now_ns() < deadline) {
		nanosleep(&pause, NULL);
		is_held = lock_try(&pool->still);
	}
	return is_held;
}

void pools_let_move(struct pool *pool)
{
	lock_leave(&pool->still);
}

void pools_freed(struct pool *pool, bool is_done_now)
{
	FAULT("pool: the driver freed");
	if (is_done_now)
		look_at(pool);
	else
		mark_dirty(pool);
}

void pools_after_free(CUresult answer, const struct allocation *allocation, bool is_done_now)
{
	if (answer != CUDA_SUCCESS) {
		allocations_put_back(allocation);
		return;
	}
	allocations_give_back(allocation);
	if (allocations_pool(allocation))
		pools_freed(allocations_pool(allocation), is_done_now);
}

void pools_synchronized(void)
{
	/* relaxed: a free that is not seen yet was not ordered before this synchronization */
	if (LIKELY(!atomic_load_explicit(&some_are_dirty, memory_order_relaxed)))
		return;
	atomic_exchange(&some_are_dirty, false);
	FAULT("pool: synchronized");
	for (struct pool *p = pool_list_first(); p; p = p->next)
		if (atomic_exchange(&p->is_dirty, false))
			look_at(p);
}

void pools_update(CUmemoryPool handle)
{
	struct pool *p = pool_list_find(handle);

	if (p)
		pool_reading_renew(p);
}

void pools_reset_after_fork(void)
{
	pool_list_reset_after_fork();
}
