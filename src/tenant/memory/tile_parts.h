/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is mapped into which parts of arrays, as the driver has it: what is mapped or unmapped later lets go of all that lies wholly
 * within its own part, and of nothing that lies there in part.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/holding.h"

/* The array's name for us: its handle, the lowest bit set for a mipmapped one. */
static inline uint64_t tiles_resource(const void *handle, bool is_mipmap)
{
	return (uintptr_t)handle | is_mipmap;
}

/* A box in one level and layer of an array, or (a mipmapped array's tail) a range of bytes of a layer. */
struct tile_part {
	uint64_t resource;
	uint32_t type; /* CUarraySparseSubresourceType */
	uint32_t level, layer;
	uint64_t at[3], extent[3];
};

struct tile_part tile_part_of(const CUarrayMapInfo *info);

/* Memory that is mapped into a part. Several may be of one part, where nobody knows which one is. */
struct mapped_tile {
	struct mapped_tile *next; /* in a list of those that were taken out */
	struct mapped_tile *next_of_array, *next_of_bucket;
	struct mapped_tile **at_of_array; /* what points to it there */
	struct tile_part part;
	uint64_t life; /* of the array's context */
	CUmemGenericAllocationHandle handle;
	uint32_t serial;	/* of the holding */
	struct holding_end end; /* once it is taken out: of the reference */
};

/* Makes it mapped. False without memory, and then it is the caller's still. */
bool tile_parts_put(struct mapped_tile *tile) MUST_CHECK;

/* Take out all that lie within the part, are of the array, or end with a context's life: a list. */
struct mapped_tile *tile_parts_take_within(const struct tile_part *part) MUST_CHECK;
struct mapped_tile *tile_parts_take_array(uint64_t resource) MUST_CHECK;
struct mapped_tile *tile_parts_take_life(uint64_t life) MUST_CHECK;

/* For a child of fork(). */
void tile_parts_reset_after_fork(void);
