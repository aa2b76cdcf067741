/* SPDX-License-Identifier: Apache-2.0 */
/* Works: the things that a stream or the node of a graph does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/model/memory/fill.h"

struct conditional;
struct context;
struct device;
struct graph;
struct graph_block;
struct stream;
struct work;

/* The operations of one type of work; each may be NULL. */
struct work_ops {
	/* Does it. *ret_duration_ns is 0 and *ret_is_busy true until set. */
	CUresult (*run)(const struct work *work, struct device *device, uint64_t *ret_duration_ns,
		bool *ret_is_busy);
	/* Called when all of its graph ends, at that time of the stream. */
	CUresult (*finish)(const struct work *work, struct stream *stream, uint64_t end_ns);
	/* Gives back what it has taken. */
	void (*drop)(struct work *work);
};

/* Under driver.memory_lock while it belongs to a node. */
struct work {
	CUgraphNodeType type;
	const struct work_ops *ops;
	struct context *context; /* that a node's runs in; NULL: its stream's */
	union {
		struct {
			CUDA_KERNEL_NODE_PARAMS_v2 params;
			uint64_t duration_ns;
		} kernel;
		struct copy copy;
		struct fill fill;
		CUDA_HOST_NODE_PARAMS host;
		struct graph *child;
		struct conditional *conditional;
		CUevent event;
		struct {
			CUDA_MEM_ALLOC_NODE_PARAMS params;
			struct graph_block *block;
		} alloc;
		CUdeviceptr freed;
	};
};

/* A work of that type which has taken nothing yet. */
struct work work_of(CUgraphNodeType type);

/* The work that a program describes. Under driver.memory_lock. */
CUresult work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct work *ret_work);
CUresult work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *ret_work);
CUresult work_free(CUdeviceptr dptr, struct work *ret_work);
CUresult work_from_params(CUgraphNodeParams *params, struct work *ret_work);

/* The context that the program names for a node, or NULL. */
CUcontext work_named_context(const CUgraphNodeParams *params);

/* Whether a node of this type may be given other parameters later. */
static inline bool work_can_change(CUgraphNodeType type)
{
	return type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE &&
	       type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

/* Does the work, and says how long that takes and whether the device is needed for it. */
static inline CUresult work_run(const struct work *work, struct device *device,
	uint64_t *ret_duration_ns, bool *ret_is_busy)
{
	*ret_duration_ns = 0;
	*ret_is_busy = true;
	return work->ops->run ? work->ops->run(work, device, ret_duration_ns, ret_is_busy)
			      : CUDA_SUCCESS;
}

/* Gives back all that the work has taken: it comes to no node, or its node goes. */
static inline void work_drop(struct work *work)
{
	if (work->ops->drop)
		work->ops->drop(work);
}
