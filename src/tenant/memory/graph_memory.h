/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph allocates and frees of the memory of graphs, and what that needs at most. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

struct device;

/* A device's memory for what the graph allocates there. */
struct need {
	struct need *next; /* on another device, of a larger ordinal */
	struct device *device;
	uint64_t bytes; /* until graph_memory_close(): each allocation as whole steps of the pool */
	uint64_t first_step; /* of the addresses, that is not counted yet */
	uint64_t step_count;
	/* what graph_growth.c knows of the last launch */
	uint64_t epoch, stream_id;
};

struct graph_range {
	CUdeviceptr base;
	uint64_t bytes;
	struct need *need; /* NULL: not a device's */
	bool is_freed;	   /* else allocated */
};

/* Its ranges are all, until it is closed; then what is allocated or freed alone. */
struct graph_memory {
	struct need *needs;
	struct graph_range *ranges;
	size_t count, room;
	bool frees_others;
	/* what graphs.c knows of frees of these, in the order of a stream, since the last launch */
	_Atomic uint32_t frees;	   /* under way */
	_Atomic uint64_t freed_in; /* by its number: the stream of all; 0: there were none */
};
/* In several streams, or in one whose number is not known. */
#define GRAPH_MEMORY_FREED_ELSEWHERE UINT64_MAX

/* A node of the graph; *memory is begun where it is NULL. device: NULL: not a device's. False without memory. */
bool graph_memory_allocates(struct graph_memory **memory, struct device *device, CUdeviceptr base,
	uint64_t bytes) MUST_CHECK;
bool graph_memory_frees(struct graph_memory **memory, CUdeviceptr base) MUST_CHECK;

/* That were all. Accepts NULL. */
void graph_memory_close(struct graph_memory *memory);

/* Accepts NULL. */
void graph_memory_free(struct graph_memory *memory);

/* The graph frees all that it allocates, and nothing else. */
static inline bool graph_memory_is_balanced(const struct graph_memory *memory)
{
	return memory->count == 0;
}
