/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: stream-ordered memory in a reserve that grows and shrinks by whole steps. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/time/timeline.h"

#define POOL_MAGIC   0x504f4f4cu
#define POOL_BUCKETS 4096 /* power of two */

enum range_state { RANGE_HOLE, RANGE_FREE, RANGE_PENDING, RANGE_USED };

/* A piece of a pool's addresses; together they cover all of them, in order. */
struct range {
	enum range_state state;
	bool is_touched;
	uint64_t offset;
	uint64_t length;
	size_t bytes;	     /* asked for, if used or pending */
	uint64_t free_at_ns; /* if pending */
	struct range *next, *prev;
	struct range *next_idle, *prev_idle; /* free and pending ones */
	struct range *next_hashed;	     /* used ones */
};

struct pool {
	struct owner owner;
	uint32_t magic; /* 0 once destroyed by the program */
	struct device *device;
	CUmemPoolProps props;
	CUdeviceptr base; /* 0 until first used */
	uint64_t size;	  /* addresses */
	uint64_t max_bytes;
	uint64_t threshold;
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	uint64_t stale; /* freed by cuMemFree, but still in `used` */
	uint64_t live;	/* allocations that are not freed */
	uint32_t pending;
	uint32_t kept;	  /* place of the kept memory that its reserve is, + 1; 0: not exported */
	bool is_imported; /* that memory is another process's pool's */
	struct machine_kept made;
	int reuse[3];	       /* the three attributes, remembered only */
	uint8_t *is_committed; /* a byte a step */
	uint64_t step_end;     /* no step at or above was ever committed */
	struct range *first;
	struct range *idle;
	struct range **bucket;
	struct pool *next;
};

/* As what the machine counts it. Managed memory of a pool is touched at once. */
static inline enum machine_kind pool_kind(const struct pool *pool)
{
	return pool->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ? MACHINE_MANAGED
								       : MACHINE_POOL;
}

/* Makes a device's default pool. For cuInit. */
CUresult pool_init_device(struct device *device);

/*
 * What synchronizing does to the pools of a device: frees whose time has come are done, and unused
 * steps above the release threshold go back. Takes memory_lock.
 */
void pool_collect(struct device *device);

/* The same after waiting for an event, which corrects fewer counts. */
void pool_collect_event(struct device *device);

/* All functions from here on are called under memory_lock. */
struct pool *pool_new(struct device *device, const CUmemPoolProps *props);
/* The pool of a handle from the program, or NULL. */
struct pool *pool_check(CUmemoryPool handle);

CUresult pool_take(struct pool *pool, size_t bytes, struct stream *stream, CUdeviceptr *ret_base);
struct range *pool_find_used(struct pool *pool, CUdeviceptr base);
/* Frees a used range at free_at_ns of the machine's clock. */
void pool_give(struct pool *pool, struct range *range, uint64_t free_at_ns);
/* Turns pending ranges whose time has come into free ones. */
void pool_finish(struct pool *pool, uint64_t now_ns);
/* Gives unused steps back while more than `keep_bytes` are reserved. */
void pool_trim(struct pool *pool, uint64_t keep_bytes);
/* Gives back the addresses of a pool in which nothing is any more. */
void pool_forget_ranges(struct pool *pool);
/* The program destroys the pool; what is still allocated stays until it is freed. */
CUresult pool_destroy(struct pool *pool);
