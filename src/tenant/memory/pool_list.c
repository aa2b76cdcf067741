/* SPDX-License-Identifier: Apache-2.0 */
/* The pools that are known, and whose handle is whose. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/pool_list.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"

/* Longest wait for a pool's handle that another thread is just being given. */
#define CREATION_WAIT_NS 1000000000u

/* So many NUMA nodes of the host are asked for their pools. */
#define HOST_NODES_MOST 64

struct lock pool_list_lock;
_Atomic(struct pool *) pool_list;
static _Atomic uint32_t creations; /* under way */

struct pool *pool_list_find_asked(CUmemoryPool handle)
{
	struct pool *p = pool_list_first();

	while (p && atomic_load(&p->asked) != handle)
		p = p->next;
	return p;
}

/* A destroyed pool's place, once nothing is left in it. */
static struct pool *find_unused(const struct device *device, bool may_end)
{
	struct pool *p = pool_list_first();

	while (p && (p->device != device || p->may_end != may_end || p->shared ||
			    atomic_load(&p->handle) || atomic_load(&p->asked) || p->held_bytes))
		p = p->next;
	return p;
}

/* Under pool_list_lock; NULL without memory. A handle of NULL is none, so the pool is its own. */
static struct pool *add(
	CUmemoryPool handle, struct device *device, enum charge_kind kind, bool may_end)
{
	struct pool *p = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*p));

	if (!p) {
		log_error("no memory for our own tables, so a pool's allocations are refused");
		return NULL;
	}
	p->device = device;
	p->kind = kind;
	p->may_end = may_end;
	atomic_init(&p->handle, handle ? handle : (CUmemoryPool)p);
	atomic_init(&p->asked, p->handle);
	p->next = pool_list_first();
	/* pairs with the acquire in pool_list_first() */
	atomic_store_explicit(&pool_list, p, memory_order_release);
	return p;
}

struct pool *pool_list_enter(CUmemoryPool handle, struct device *device, bool may_end)
{
	struct pool *p = find_unused(device, may_end);

	FAULT("pool: adding");
	if (!p)
		return add(handle, device, CHARGE_POOL, may_end);
	/* In this order: with the other word alone it would be a pool that the program has destroyed, and is to end in the driver. */
	atomic_store(&p->handle, handle);
	FAULT("pool: handed over");
	atomic_store(&p->asked, handle);
	return p;
}

/* The pool with this handle, entered if it is new; NULL without memory. */
static struct pool *find_or_add(CUmemoryPool handle, struct device *device, bool may_end)
{
	LOCK_SCOPE(&pool_list_lock);
	struct pool *p = pool_list_find(handle);

	return p ? p : pool_list_enter(handle, device, may_end);
}

struct pool *pool_list_of_graphs(struct device *device)
{
	struct pool *p = pool_list_first();

	while (p && (p->device != device || !pool_is_of_graphs(p)))
		p = p->next;
	if (p)
		return p;
	LOCK_SCOPE(&pool_list_lock);
	for (p = pool_list_first(); p && (p->device != device || !pool_is_of_graphs(p));)
		p = p->next;
	return p ? p : add(NULL, device, CHARGE_GRAPH, false);
}

void pool_list_create_begin(void)
{
	atomic_fetch_add(&creations, 1);
}

void pool_list_create_end(void)
{
	atomic_fetch_sub(&creations, 1);
}

/* A handle may be known to another thread before the call that makes the pool has entered it. */
static struct pool *find_after_creations(CUmemoryPool handle)
{
	struct patience patience = patience_begin(CREATION_WAIT_NS);
	struct pool *p = NULL;

	for (unsigned i = 0; atomic_load(&creations) > 0 && !patience_is_over(&patience); i++) {
		p = pool_list_find(handle);
		if (p)
			return p;
		lock_rest(i);
	}
	return pool_list_find(handle);
}

bool pool_list_is_any_coming(void)
{
	return atomic_load(&creations) > 0;
}

struct pool *pool_list_find_made(CUmemoryPool handle)
{
	struct pool *p = pool_list_find_asked(handle);

	return p ? p : find_after_creations(handle);
}

static bool is_default(CUmemoryPool handle, CUdevice ordinal)
{
	CUmemoryPool own;

	return cuda.cuDeviceGetDefaultMemPool(&own, ordinal) == CUDA_SUCCESS && own == handle;
}

/* The host's own pools, which take no device memory. */
static bool is_hosts(CUmemoryPool handle)
{
	CUmemLocation at = {.type = CU_MEM_LOCATION_TYPE_HOST};
	CUmemoryPool own;

	for (; at.id < HOST_NODES_MOST && cuda.cuMemGetDefaultMemPool; at.id++) {
		if (cuda.cuMemGetDefaultMemPool(&own, &at, CU_MEM_ALLOCATION_TYPE_PINNED) !=
			CUDA_SUCCESS)
			return false;
		if (own == handle)
			return true;
		if (at.type == CU_MEM_LOCATION_TYPE_HOST)
			at = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = -1};
	}
	return false;
}

struct pool *pool_list_find_anywhere(CUmemoryPool handle)
{
	struct pool *p = pool_list_find(handle);
	struct device *device;
	int count = 0;

	if (LIKELY(p) || !handle || pool_list_find_asked(handle))
		return p;
	p = find_after_creations(handle);
	if (p || pool_list_is_any_coming() || !cuda.cuDeviceGetDefaultMemPool ||
		!cuda.cuDeviceGetCount || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return p;
	for (CUdevice i = 0; i < count; i++)
		if (is_default(handle, i))
			return state_meet_device(i, &device) == 0
				       ? find_or_add(handle, device, false)
				       : NULL;
	if (is_hosts(handle))
		return find_or_add(handle, NULL, false);
	return state_current_device(&device) == CUDA_SUCCESS ? find_or_add(handle, device, true)
							     : NULL;
}

void pool_list_reset_after_fork(void)
{
	struct pool *p = pool_list_first(), *next;

	/* relaxed: one thread */
	atomic_store_explicit(&pool_list, NULL, memory_order_relaxed);
	pool_list_lock = (struct lock)LOCK_INIT;
	atomic_store(&creations, 0);
	for (; p; p = next) {
		next = p->next;
		free(p);
	}
}
