/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: stream-ordered memory in a reserve that grows and shrinks by whole steps. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/time/timeline.h"

struct pool;

/* Makes a device's default pool. For cuInit. */
CUresult pool_init_device(struct device *device);

/*
 * What synchronising does to the pools of a device: frees whose time has come are done, and unused
 * steps above the release threshold go back. Takes memory_lock.
 */
void pool_settle(struct device *device);

/* The same after waiting for an event, which corrects fewer counts. */
void pool_settle_event(struct device *device);

/* cuMemFree of an address owned by a pool. Under memory_lock. */
CUresult pool_free_now(struct owner *owner, CUdeviceptr base);

/* The allocation in a pool that holds `address`. Under memory_lock. */
bool pool_find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent);
