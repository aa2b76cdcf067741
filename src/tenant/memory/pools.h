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

struct allocation;
struct pool;

/*
 * An allocation from the pool with this handle begins: it counts as live until pools_freed() or pools_cancel().
 * NULL where memory is short or the handle is that of a pool that is destroyed. A pool that is not on a device
 * is charged nothing.
 */
struct pool *pools_begin(CUmemoryPool handle);

/* Whether the program has destroyed the pool, or is about to. */
bool pools_is_gone(const struct pool *pool);

/* The driver has not allocated. */
void pools_cancel(struct pool *pool);

/* The memory of the device's graphs, charged as CHARGE_GRAPH; NULL where memory is short. */
struct pool *pools_of_graphs(struct device *device);

/* Reads what a pool holds now, and how often it has been found to hold less than before. */
uint64_t pools_read(struct pool *pool, uint64_t *ret_losses);

/*
 * Until pools_let_move() no thread of ours trims the memory of graphs, and none is told that its
 * launch takes no more. False where another one is at it for too long.
 */
bool pools_hold_still(struct pool *pool) MUST_CHECK;
void pools_let_move(struct pool *pool);

/* Enters a pool that the program has made, on the device or (NULL) not on a device at all. -ENOMEM. */
int pools_add(CUmemoryPool handle, struct device *device) MUST_CHECK;

/*
 * The program destroys the pool: from the beginning on none of our own questions uses the handle, and
 * those under way have ended. NULL for an unknown pool. Memory that is still allocated from a destroyed pool
 * stays charged.
 */
struct pool *pools_destroy_begin(CUmemoryPool handle);
void pools_destroy_end(struct pool *pool, CUmemoryPool handle, bool is_destroyed);

/* Reserves for an allocation of so many bytes from the pool. *ret_charge goes to pools_keep(). */
CUresult pools_reserve(
	struct pool *pool, uint64_t bytes, CUstream stream, struct charge *ret_charge);

/* After the driver's call: reads what the pool holds now and gives back what was reserved in vain. */
void pools_keep(struct pool *pool, struct charge *charge);

/* An allocation of the pool was freed; is_done_now where the driver has freed at once. */
void pools_freed(struct pool *pool, bool is_done_now);

/* The driver's answer to a free of what allocations_take() found, a pool's or not. */
void pools_after_free(CUresult answer, const struct allocation *allocation, bool is_done_now);

/*
 * Around a synchronization of a stream, event or context: pools that had frees may hold less after it. number
 * is what pools_sync_begin() said, or 0 where the synchronization may not have done all earlier frees: the
 * driver says nothing any more of a destroyed pool, so its last frees count as done by that alone.
 */
uint64_t pools_sync_begin(void);
void pools_sync_end(uint64_t number);

/*
 * The pool can be imported by other processes now, by the descriptor fd or (fd is -1) by a handle with
 * this key. What it holds then stays charged until the process ends, because a pool that was imported
 * does not give memory back (H200, driver 580), and no call tells whether it was.
 */
void pools_share(CUmemoryPool handle, int fd, uint64_t key);

/* Reads what one pool holds, by its handle; nothing for an unknown one. */
void pools_update(CUmemoryPool handle);

/* Before a refusal: corrects what the pools of the device are charged; and gives their unused memory back. */
void pools_collect(struct device *device);
void pools_trim(struct device *device);

/* For a child of fork(). */
void pools_reset_after_fork(void);
