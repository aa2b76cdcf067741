/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of stream-ordered memory, charged by what they keep from the device.
 *
 * A pool reserves device memory in steps of 32 MiB and gives it back when a synchronization finds it
 * unused (H200, driver 580), so neither allocations nor frees tell what it holds. The driver does,
 * for 20 ns. Invariant: what a pool holds <= what was last read of it + what calls that are under
 * way have reserved for its growth; both are in the books.
 *
 * The memory of a device's graphs is such a pool, too, with a reading and a trim of its own
 * (graphs.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"

#define POOL_STEP_BYTES UINT64_C(0x2000000)

struct shared_name;
struct allocation;
struct pool;

/*
 * An allocation from the pool with this handle begins: until pools_end() the driver does not destroy the pool.
 * NULL where memory is short or the handle is that of a pool that is destroyed. A pool that is not on a device
 * is charged nothing.
 */
struct pool *pools_begin(CUmemoryPool handle);
void pools_end(struct pool *pool);

/* Whether the program has destroyed the pool. */
bool pools_is_gone(const struct pool *pool);

/* The same of a handle, which the driver may still know. */
bool pools_is_ended(CUmemoryPool handle);

/* Reads what a pool holds now, and how often it has been found to hold less than before. */
uint64_t pools_read(struct pool *pool, uint64_t *ret_losses);

/*
 * Until pools_let_move() no thread of ours trims the memory of graphs, and none is told that its
 * launch takes no more. False where another one is at it for too long.
 */
bool pools_hold_still(struct pool *pool) MUST_CHECK;
void pools_let_move(struct pool *pool);

/* Enters a pool that was made (pool_list.h), on the device or (NULL) not on a device at all. -ENOMEM. */
int pools_add(CUmemoryPool handle, struct device *device) MUST_CHECK;

/*
 * The program destroys the pool. The driver does so when nothing is in it any more, for until then it is to say
 * what is: so what was allocated from the pool, and what a stream has yet to free, stays charged.
 */
CUresult pools_destroy(CUmemoryPool handle);

/* Reserves for an allocation of so many bytes from the pool. *ret_charge goes to pools_keep() or pools_cancel(). */
CUresult pools_reserve(
	struct pool *pool, uint64_t bytes, CUstream stream, struct charge *ret_charge);

/* After the driver's call: reads what the pool holds now and gives back what was reserved in vain. */
void pools_keep(struct pool *pool, struct charge *charge);

/* Instead, where the driver gave nothing: what is reserved is this process's alone, to be used for something else or undone. */
void pools_cancel(struct pool *pool, struct charge *charge);

/* An allocation of the pool was freed; is_done_now where the driver has freed at once. */
void pools_freed(struct pool *pool, bool is_done_now);

/* The driver's answer to a free of what allocations_take() found, a pool's or not. */
void pools_after_free(CUresult answer, const struct allocation *allocation, bool is_done_now);

/* After a synchronization of a stream, event or context: pools that had frees may hold less. */
void pools_synchronized(void);

/*
 * The pool can be imported by other processes now, by the descriptor fd or (fd is -1) by a handle with
 * this key. What it holds then stays charged until the process ends, because a pool that was imported
 * does not give memory back (H200, driver 580), and no call tells whether it was. False where the pool is not
 * known any more or there is no place for it: importers would not find what to hold, so it must not be given out.
 */
bool pools_share(CUmemoryPool handle, int fd, const struct shared_name *name) MUST_CHECK;

/* Reads what one pool holds, by its handle; nothing for an unknown one. */
void pools_update(CUmemoryPool handle);

/* Before a refusal: corrects what the pools of the device are charged; and gives their unused memory back. */
void pools_collect(struct device *device);
void pools_trim(struct device *device);

/* For a child of fork(). */
void pools_reset_after_fork(void);
