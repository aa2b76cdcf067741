/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that are known, and whose handle is whose. A pool stays in the list when it is gone, and its place is
 * another's later.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

struct pool {
	struct pool *next; /* never changes once it is in the list */
	enum charge_kind
		kind; /* CHARGE_POOL, or CHARGE_GRAPH: the device's own, without a handle */
	bool may_end; /* the program can destroy it */
	_Atomic(CUmemoryPool) handle; /* NULL: the program has destroyed it; of graphs: itself */
	_Atomic(CUmemoryPool) asked;  /* the same until the driver destroys it, too */
	_Atomic uint32_t users;	      /* trims of ours that use it now */
	_Atomic uint32_t under_way;   /* allocations from it, where it may end */
	_Atomic uint32_t
		unshared;      /* of these, with what they take reserved for this process alone */
	struct device *device; /* NULL: not on a device */
	_Atomic bool is_dirty; /* something was freed and not read since */
	struct lock still;     /* of graphs: held while nobody may trim */
	_Atomic uint64_t losses;
	_Atomic uint32_t changes; /* of what was read: odd while it is replaced */
	struct lock lock;	  /* guards the rest */
	_Atomic uint32_t
		shared;	      /* + 1; 0: the pool was never exported. Read without the lock, too */
	uint64_t shown_bytes; /* where it was: what it holds, though it is charged for more */
	_Atomic uint64_t held_bytes; /* as last read */
};

extern _Atomic(struct pool *) pool_list;
extern struct lock pool_list_lock; /* held by whoever adds */

static inline struct pool *pool_list_first(void)
{
	/* pairs with the release in add() */
	return atomic_load_explicit(&pool_list, memory_order_acquire);
}

/* The pool that the program knows by this handle, or NULL. */
static inline struct pool *pool_list_find(CUmemoryPool handle)
{
	struct pool *p = pool_list_first();

	/* relaxed: a thread that uses a handle knows it to be valid */
	while (p && atomic_load_explicit(&p->handle, memory_order_relaxed) != handle)
		p = p->next;
	return p;
}

static inline bool pool_is_of_graphs(const struct pool *p)
{
	return p->kind == CHARGE_GRAPH;
}

/* The pool that the driver knows by this handle, though the program may have destroyed it. */
struct pool *pool_list_find_asked(CUmemoryPool handle);

/* The same, which another thread may just be making. Where it is NULL, and any is coming still, it may be known later. */
struct pool *pool_list_find_made(CUmemoryPool handle);
bool pool_list_is_any_coming(void);

/*
 * The same as pool_list_find(), entered where it is a device's own, the host's, or one of which nobody knows whose it is,
 * which counts as on the current device. NULL for a pool that is destroyed, and without memory.
 */
struct pool *pool_list_find_anywhere(CUmemoryPool handle);

/* A new pool, in the place of one that is gone where there is such a place. Under pool_list_lock; NULL without memory. */
struct pool *pool_list_enter(CUmemoryPool handle, struct device *device, bool may_end);

/* The memory of the device's graphs, charged as CHARGE_GRAPH; NULL where memory is short. */
struct pool *pool_list_of_graphs(struct device *device);

/* Around a call that makes a pool: a thread that uses its handle before we have it waits. */
void pool_list_create_begin(void);
void pool_list_create_end(void);

/* For a child of fork(). */
void pool_list_reset_after_fork(void);
