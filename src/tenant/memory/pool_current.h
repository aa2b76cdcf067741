/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current pool of each device, from which cuMemAllocAsync() allocates.
 *
 * The driver is asked once, and again when a call may have changed the answer. The allocation is then made
 * from the pool that was found here, by its handle: so the pool that is charged is the one that gives.
 */
#pragma once

#include "tenant/memory/pools.h"

/*
 * An allocation from the device's current pool begins, as by pools_begin(); with the handle that the driver is
 * to be given. NULL where the driver names no pool, or memory is short.
 */
struct pool *pool_current_begin(struct device *device, CUmemoryPool *ret_handle);

/*
 * Around a call that makes another pool current. False: the program has destroyed the pool, and the driver, which may
 * still have it, must not be asked.
 */
bool pool_current_choose_begin(CUmemoryPool pool) MUST_CHECK;
void pool_current_choose_end(void);

/* The same as pools_destroy(); where the pool is current, the device's own becomes it, as the driver has it. */
CUresult pool_current_destroy(CUmemoryPool pool);

/* For after the driver's answer. */
void pool_current_context_ended(struct device *device, CUcontext context);

/* For a child of fork(). */
void pool_current_reset_after_fork(void);
