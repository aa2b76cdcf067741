/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each pointer was charged for.
 *
 * The driver takes device memory in chunks of 2 MiB. An allocation of 2 MiB or more has chunks of
 * its own; smaller ones share them, and a chunk goes back when the last of its tenants goes. Which
 * chunk an allocation is in can be read off its address (measured on an H200, driver 580: chunks
 * are 2 MiB aligned, a small allocation never crosses one, and one of 1.5 MiB shares its rest).
 * So a chunk is charged once, for its first tenant.
 */
#pragma once

#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/reconcile.h"

struct shared_name;
struct pool;

/* What is known of a pointer, once it has been taken out of the table. */
struct allocation {
	CUdeviceptr pointer;
	struct holding holding;
};

/* Bytes to reserve before the driver is asked for an allocation of this size. */
uint64_t allocations_worst_bytes(uint64_t bytes);

/*
 * Keeps the charge for a new allocation of the current context, or gives it back where the
 * allocation shares a chunk that is charged already. Where our memory does not suffice, the
 * allocation is freed again and CUDA_ERROR_OUT_OF_MEMORY returned.
 */
CUresult allocations_keep(CUdeviceptr pointer, uint64_t bytes, struct charge *charge);

/* The same for a host fallback (oversubscribe.h), which is on pages of its own and shares no chunk. */
CUresult allocations_keep_host_fallback(CUdeviceptr pointer, uint64_t bytes, struct charge *charge);

/*
 * The driver chooses the pitch, so we learn it by reserving for the widest that we know (expected
 * bytes, by allocations_pitched_bytes()). What it really took is charged afterwards: where it is more,
 * the whole or nothing, as allocations_keep() does.
 */
uint64_t allocations_pitched_bytes(uint64_t width_bytes, uint64_t height);
CUresult allocations_keep_pitched(
	CUdeviceptr pointer, uint64_t expected, uint64_t taken, struct charge *charge);

/* Remembers that the pointer comes from a pool, which is charged as a whole; since: as of before the driver was asked. */
int allocations_keep_pooled(CUdeviceptr pointer, struct pool *pool, uint64_t since) MUST_CHECK;

enum {
	_ALLOCATIONS_E_SUCCESS = 0,
	ALLOCATIONS_E_UNKNOWN, /* not one of ours: the driver knows what to do */
};

/* Takes the pointer out before the driver is asked to free it, because it may give it out again. */
int allocations_take(CUdeviceptr pointer, struct allocation *ret_allocation) MUST_CHECK;

/* The driver refused to free it: it is what it was. */
void allocations_put_back(const struct allocation *allocation);

/* The pool it came from, NULL for any other memory. */
struct pool *allocations_pool(const struct allocation *allocation);

/* Whether it is a host fallback; and the same of a pointer that is not taken out. */
bool allocations_is_host_fallback(const struct allocation *allocation);
bool allocations_falls_back(CUdeviceptr pointer);

/*
 * The pointer can be opened by other processes now, by a handle with this name; its charge becomes that
 * of all who do. False: no other process of the slice can open it.
 */
bool allocations_share(CUdeviceptr pointer, const struct shared_name *name) MUST_CHECK;

/* Whether something else may keep the memory when the pointer is freed (HOLDING_MAY_STAY). */
bool allocations_is_to_be_watched(const struct allocation *allocation);
/* What its end gives back to the device at least. */
uint64_t allocations_bytes(const struct allocation *allocation);

/* The driver has freed it: gives back its charge; nothing to do for a pool's. */
void allocations_give_back(const struct allocation *allocation);

/* Around the driver's call where it may be all that is known of a chunk (reconcile_chunk_ends()). */
bool allocations_is_chunk_in_doubt(const struct allocation *allocation);
void allocations_give_back_chunk(
	const struct allocation *allocation, const struct reconcile_chunk *before);
