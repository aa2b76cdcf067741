/* SPDX-License-Identifier: Apache-2.0 */
/* The current pool of each device. */
#include "tenant/memory/pool_current.h"

#include "base/clock.h"
#include "base/lock.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"

/* A current pool that is being destroyed stays current until the driver has destroyed it: so long at most. */
#define CLOSING_WAIT_NS UINT64_C(1000000000)

/* What the driver said last. */
struct answer {
	_Atomic(CUmemoryPool) handle;
	_Atomic uint64_t as_of; /* changes, before the driver was asked; 0: it was never asked */
};
static struct answer answers[STATE_ORDINALS];
static _Atomic uint64_t changes = 1;
static struct lock answer_lock;
static struct lock choice_lock; /* held while the driver makes another pool current */

static void remember(struct answer *a, CUmemoryPool handle, uint64_t as_of)
{
	LOCK_SCOPE(&answer_lock);

	/* relaxed: changed under the lock only */
	if (atomic_load_explicit(&a->as_of, memory_order_relaxed) >= as_of)
		return;
	atomic_store_explicit(&a->handle, handle, memory_order_relaxed);
	/* pairs with the acquire in current() */
	atomic_store_explicit(&a->as_of, as_of, memory_order_release);
}

static CUmemoryPool current(const struct device *device)
{
	struct answer *a = &answers[device->ordinal];
	uint64_t now = atomic_load(&changes);
	CUmemoryPool handle = NULL;

	/* pairs with the release in remember() */
	if (LIKELY(atomic_load_explicit(&a->as_of, memory_order_acquire) == now))
		/* relaxed: the answer to a later question is right, too */
		return atomic_load_explicit(&a->handle, memory_order_relaxed);
	if (!cuda.cuDeviceGetMemPool ||
		cuda.cuDeviceGetMemPool(&handle, device->ordinal) != CUDA_SUCCESS)
		return NULL;
	remember(a, handle, now);
	return handle;
}

static void changed(void)
{
	/* sequentially consistent, as the question in current() comes after its load */
	atomic_fetch_add(&changes, 1);
}

struct pool *pool_current_begin(struct device *device, CUmemoryPool *ret_handle)
{
	struct patience patience = {.longest_ns = 0};

	for (unsigned i = 0;; i++) {
		struct pool *pool;

		*ret_handle = current(device);
		pool = *ret_handle ? pools_begin(*ret_handle) : NULL;
		if (LIKELY(pool) || !*ret_handle)
			return pool;
		if (!patience.longest_ns)
			patience = patience_begin(CLOSING_WAIT_NS);
		else if (patience_is_over(&patience))
			return NULL;
		lock_rest(i);
		changed();
	}
}

bool pool_current_choose_begin(CUmemoryPool pool)
{
	lock_enter(&choice_lock);
	if (!pools_is_ended(pool))
		return true;
	lock_leave(&choice_lock);
	return false;
}

void pool_current_choose_end(void)
{
	changed();
	lock_leave(&choice_lock);
}

/* Where the pool is current, the device's own becomes it. */
static void leave(CUmemoryPool pool)
{
	CUmemoryPool own, now;
	int count = 0;
	LOCK_SCOPE(&choice_lock);

	if (!pool || !cuda.cuDeviceGetCount || !cuda.cuDeviceGetMemPool ||
		!cuda.cuDeviceGetDefaultMemPool || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return;
	for (CUdevice i = 0; i < count; i++)
		if (cuda.cuDeviceGetMemPool(&now, i) == CUDA_SUCCESS && now == pool &&
			cuda.cuDeviceGetDefaultMemPool(&own, i) == CUDA_SUCCESS)
			cuda.cuDeviceSetMemPool(i, own);
}

CUresult pool_current_destroy(CUmemoryPool pool)
{
	CUresult r;

	leave(pool);
	r = pools_destroy(pool);
	changed();
	return r;
}

void pool_current_context_ended(struct device *device, CUcontext context)
{
	/* A reset of the device makes its default pool current. */
	changed();
}

void pool_current_reset_after_fork(void)
{
	answer_lock = choice_lock = (struct lock)LOCK_INIT;
	changed();
}
