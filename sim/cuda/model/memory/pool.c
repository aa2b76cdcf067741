/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: what they give out, keep back and give up. */
#include "sim/cuda/model/memory/pool.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/time/timeline.h"

/* Under memory_lock: those that hold something or may; and those that have ended, whose handles come again. */
static struct pool *all, *ended;

struct pool *pool_check(CUmemoryPool handle)
{
	struct pool *pool = (struct pool *)handle;

	return pool && pool->magic == POOL_MAGIC ? pool : NULL;
}

/* Nothing is left of a destroyed pool: its addresses and its handle are free. */
static void end(struct pool *pool)
{
	struct pool **at = &all;

	pool_forget_ranges(pool);
	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	pool->next = ended;
	ended = pool;
}

/* A destroyed pool keeps nothing back; the others keep their threshold. */
static void collect(struct pool *pool)
{
	pool_finish(pool, timeline_now(pool->device));
	pool_trim(pool, pool->magic == POOL_MAGIC ? pool->threshold : 0);
	if (pool->kept > 0 && pool->magic != POOL_MAGIC && pool->live == 0 && pool->pending == 0) {
		ipc_drop(pool->kept - 1);
		pool->kept = 0;
		pool->reserved = 0; /* is others' now, or gone */
	}
	if (pool->magic != POOL_MAGIC && pool->live == 0 && pool->pending == 0 &&
		pool->reserved == 0 && pool->kept == 0)
		end(pool);
}

static void collect_device(struct device *device, bool is_complete)
{
	LOCK_SCOPE(&driver.memory_lock);
	for (struct pool *pool = all, *next; pool; pool = next) {
		next = pool->next;
		if (pool->device != device || pool->base == 0)
			continue;
		if (is_complete) {
			pool->used -= pool->stale;
			pool->stale = 0;
		}
		collect(pool);
	}
}

void pool_collect(struct device *device)
{
	collect_device(device, true);
}

void pool_collect_event(struct device *device)
{
	collect_device(device, false);
}

static CUresult free_now(struct owner *owner, CUdeviceptr base)
{
	struct pool *pool = (struct pool *)owner;
	struct range *range = pool_find_used(pool, base);
	size_t bytes;

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = range->bytes;
	pool_give(pool, range, 0);
	/* Measured: the reserve goes back at once, the count of used bytes does not. */
	pool->used += bytes;
	pool->stale += bytes;
	collect(pool);
	return CUDA_SUCCESS;
}

static bool find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent)
{
	struct pool *pool = (struct pool *)owner;
	uint64_t offset = address - pool->base;
	struct range *range = pool_find_used(pool, address);

	if (!range) {
		for (range = pool->first; range; range = range->next) {
			if (offset < range->offset + range->length)
				break;
		}
	}
	if (!range || range->state != RANGE_USED || offset >= range->offset + range->bytes)
		return false;
	*ret_extent = (struct extent){.base = pool->base + range->offset,
		.bytes = range->bytes,
		.device = pool->device,
		.pool = pool,
		.touched = &range->is_touched,
		.is_accessible = true};
	return true;
}

static CUresult free_at(struct owner *owner, CUdeviceptr base, uint64_t at_ns)
{
	struct pool *pool = (struct pool *)owner;
	struct range *range = pool_find_used(pool, base);

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	pool_give(pool, range, at_ns);
	return CUDA_SUCCESS;
}

struct pool *pool_new(struct device *device, const CUmemPoolProps *props)
{
	static const struct owner_ops ops = {find, free_now, free_at};
	struct pool *pool = ended ? ended : calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	if (pool == ended) {
		ended = pool->next;
		memset(pool, 0, sizeof(*pool));
	}
	pool->owner = (struct owner){OWNER_POOL, &ops};
	pool->magic = POOL_MAGIC;
	pool->device = device;
	pool->props = *props;
	pool->max_bytes = props->maxSize != 0 ? props->maxSize : UINT64_MAX;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = all;
	all = pool;
	return pool;
}

CUresult pool_init_device(struct device *device)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal}};

	device->default_pool = pool_new(device, &props);
	device->current_pool = device->default_pool;
	return device->default_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pool_destroy(struct pool *pool)
{
	if (!pool || pool == pool->device->default_pool)
		return CUDA_ERROR_INVALID_VALUE;
	pool->magic = 0;
	if (pool->device->current_pool == pool)
		pool->device->current_pool = pool->device->default_pool;
	collect(pool);
	return CUDA_SUCCESS;
}
