/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of graphs: addresses for each allocation node, chunks for each executable graph. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cuda/model/memory/heap.h"

/* Everything here is under driver.memory_lock. */

struct chunk;

/* The memory of one allocation node: addresses for ever, memory while it is allocated. */
struct graph_block {
	struct owner owner;
	struct device *device;
	struct context *context; /* that it was allocated in; NULL: it is not allocated now */
	CUdeviceptr base;
	size_t bytes;
	uint32_t refs;	      /* its node, an executable graph, and being allocated */
	bool is_instantiated; /* there is at most one executable graph of it */
	bool is_touched;
	uint64_t offset;     /* in the memory of its executable graph */
	struct chunk **kept; /* the chunks that it lies in, while it is allocated */
	size_t kept_count;
	struct graph_block *next; /* of all that are allocated */
};

struct graph_mapping { /* the chunks of one executable graph on one device */
	struct device *device;
	uint64_t bytes;
	struct chunk **chunks;
	size_t count; /* 0: never mapped */
	struct graph_mapping *next;
};
CUresult graph_block_new(struct device *device, size_t bytes, struct graph_block **ret_block);
void graph_block_drop(struct graph_block *block);
/* Makes sure that the mapping has memory that work beginning at ready_ns may use. */
CUresult graph_map(struct graph_mapping *mapping, uint64_t ready_ns);
void graph_map_busy(struct graph_mapping *mapping, uint64_t until_ns);
void graph_unmap(struct graph_mapping *mapping);
/* The block is allocated in these chunks from now on, or freed at that time. */
CUresult graph_block_keep(
	struct graph_block *block, const struct graph_mapping *mapping, struct context *context);
void graph_block_free(struct graph_block *block, uint64_t at_ns);
/* The block that is allocated at this address, or NULL. */
struct graph_block *graph_block_at(CUdeviceptr base);
/* Frees all that graphs allocated in a context, which ends. */
void graph_memory_clear(struct context *context);

/* For cuDeviceGraphMemTrim and the attributes. */
void graph_memory_trim(struct device *device);
CUresult graph_memory_get(
	const struct device *device, CUgraphMem_attribute attribute, cuuint64_t *ret_value);
/* Sets a high mark to what is there now; nothing else can be set. */
CUresult graph_memory_reset(struct device *device, CUgraphMem_attribute attribute);
