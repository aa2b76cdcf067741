/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, what each does, executable graphs, and the memory of a device's graphs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/time/timeline.h"

#define GRAPH_MAGIC 0x47525048u
#define NODE_MAGIC  0x4e4f4445u
#define EXEC_MAGIC  0x45584543u

/* Everything here is under driver.memory_lock unless it says otherwise. */

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

/* What a node does. */
struct work {
	CUgraphNodeType type;
	union {
		struct {
			CUDA_KERNEL_NODE_PARAMS_v2 params;
			uint64_t duration_ns;
		} kernel;
		struct copy copy;
		struct fill fill;
		CUDA_HOST_NODE_PARAMS host;
		struct graph *child;
		CUevent event;
		struct {
			CUDA_MEM_ALLOC_NODE_PARAMS params;
			struct graph_block *block;
		} alloc;
		CUdeviceptr freed;
	};
};

struct graph_node {
	uint32_t magic; /* 0 once destroyed */
	struct work work;
	struct graph *graph;
	struct graph_node **deps;
	size_t dep_count;
	size_t place;	/* in an order of execution; SIZE_MAX: not yet */
	bool is_marked; /* by whoever walks the graph now */
	struct graph_node *next,
		*prev; /* of the graph in order of creation, or of the spare ones */
};

struct graph {
	uint32_t magic; /* 0 once destroyed */
	bool is_child;	/* belongs to a node */
	struct graph_node *first, *last;
	size_t node_count;
	size_t memory_nodes;
	struct graph *next; /* of the spare ones */
};

/* graph_core.c: building. NULL without memory. */
struct graph *graph_new(void);
void graph_free(struct graph *graph);
struct graph *graph_check(CUgraph handle);
struct graph_node *graph_check_node(CUgraphNode handle);
/* The clone's nodes are in the order of the original's. */
struct graph *graph_clone(const struct graph *graph);
bool graph_has_memory(const struct graph *graph);
CUresult graph_add(struct graph *graph, struct graph_node *const *deps, size_t dep_count,
	const struct work *work, struct graph_node **ret_node);
bool graph_depend(struct graph_node *node, struct graph_node *on);
void graph_remove(struct graph_node *node);

/* graph_work.c: what a program's parameters mean. */
CUresult work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct work *ret_work);
CUresult work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *ret_work);
CUresult work_free(CUdeviceptr dptr, struct work *ret_work);
CUresult work_from_params(CUgraphNodeParams *params, struct work *ret_work);
/* What a work that came to no node has taken. */
void work_drop(struct work *work);

/* graph_memory.c */
struct mapping { /* the chunks of one executable graph on one device */
	struct device *device;
	uint64_t bytes;
	struct chunk **chunks;
	size_t count; /* 0: never mapped */
	struct mapping *next;
};
CUresult graph_block_new(struct device *device, size_t bytes, struct graph_block **ret_block);
void graph_block_drop(struct graph_block *block);
/* Makes sure that the mapping has memory that work beginning at ready_ns may use. */
CUresult graph_map(struct mapping *mapping, uint64_t ready_ns);
void graph_map_busy(struct mapping *mapping, uint64_t until_ns);
void graph_unmap(struct mapping *mapping);
/* The block is allocated in these chunks from now on, or freed at that time. */
CUresult graph_block_keep(
	struct graph_block *block, const struct mapping *mapping, struct context *context);
void graph_block_free(struct graph_block *block, uint64_t at_ns);
/* The block that is allocated at this address, or NULL. */
struct graph_block *graph_block_at(CUdeviceptr base);
bool graph_find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent);
/* What a context that ends had allocated by graphs is free. */
void graph_memory_clear(struct context *context);

/* capture.c, under memory_lock: memory for a stream that is captured. */
CUresult capture_alloc(
	struct stream *stream, struct device *device, size_t bytes, CUdeviceptr *ret_base);
CUresult capture_free(struct stream *stream, CUdeviceptr dptr);

/* capture.c: work given to a stream that is captured becomes a node. Takes memory_lock. */
bool capture_is_on(const struct stream *stream);
CUresult capture_add(struct stream *stream, const struct work *work);
/* A call that a captured stream does not allow: the capture is lost. */
CUresult capture_forbid(struct stream *stream);
CUresult capture_record(struct stream *stream, struct event *event);
/* For a stream or an event that is captured. */
CUresult capture_wait(struct stream *stream, struct event *event);
/* An event that is recorded anew. */
void capture_leave(struct captured *captured);
