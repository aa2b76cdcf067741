/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each array and mipmapped array was charged for.
 *
 * An array above 2 MiB has chunks of 2 MiB of its own. Smaller ones of a context share chunks, and a
 * chunk goes back when the last of its tenants goes (H200, driver 580). But an array has no address,
 * so nobody can see in which chunk it is. What can be seen is whether the device's free memory fell
 * when one was made: then, and only then, a chunk is charged to the context, beside those that it
 * has. No more chunks are charged than small arrays live, so the last one gives back everything;
 * before that a chunk goes back when free memory rose with a destroyed array and NVML's figure for
 * this process agrees that it is less than the books. Where these cannot tell, the charge stays. Where others may have given back as
 * much as an array took, a comparison is owed, which finds that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/tiles.h"

/* An array that is being made. */
struct array_plan {
	struct charge charge; /* no device: nothing is to be kept */
	uint64_t free_bytes;  /* before the call */
	uint64_t traffic;     /* and charge_traffic() */
	bool is_shared;	      /* may share a chunk */
};

/*
 * Reserves for the array (level_count 0) or mipmapped array, where there is something to enforce. A
 * refusal is CUDA_ERROR_OUT_OF_MEMORY, or what the driver says to such a descriptor.
 */
CUresult arrays_begin(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level_count,
	struct array_plan *ret_plan) MUST_CHECK;

/*
 * Keeps the charge for what was made. False without memory of our own, or where another context was made current meanwhile: then it
 * must go again.
 */
bool arrays_keep(const void *handle, bool is_mipmap, struct array_plan *plan) MUST_CHECK;

/* Gives the reservation back, if it was not kept. */
void arrays_undo(struct array_plan *plan);
#define _cleanup_array_plan_ __attribute__((cleanup(arrays_undo)))

/* An array that is being destroyed: out of the tables while the driver is asked. */
struct array_taken {
	struct holding_end end;
	uint64_t free_bytes;
	struct mapped_tile *tiles;
	bool is_stray; /* the books do not know it */
};
struct array_taken arrays_destroy_begin(const void *handle, bool is_mipmap);
void arrays_destroy_end(const struct array_taken *taken, bool is_destroyed);
