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

/* A call has made another pool current, or may have: for after the driver's answer. */
void pool_current_changed(void);
void pool_current_context_ended(struct device *device, CUcontext context);

/* For a child of fork(). */
void pool_current_reset_after_fork(void);
