/* SPDX-License-Identifier: Apache-2.0 */
/* Works: how each type is described, done and dropped. */
#include "sim/cuda/model/graph/work.h"

#include <stdlib.h>

#include "sim/cuda/model/code/image.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/conditional.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/graph_memory.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/copy.h"
#include "sim/cuda/model/memory/fill.h"
#include "sim/cuda/model/time/callback.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult run_kernel(const struct work *work, struct device *device,
	uint64_t *ret_duration_ns, bool *ret_is_busy)
{
	*ret_duration_ns = work->kernel.duration_ns;
	return CUDA_SUCCESS;
}

static CUresult run_copy(const struct work *work, struct device *device, uint64_t *ret_duration_ns,
	bool *ret_is_busy)
{
	bool has_host;
	CUresult result = copy_run(&work->copy, device, ret_duration_ns, &has_host);

	*ret_is_busy = !has_host;
	return result;
}

static CUresult run_fill(const struct work *work, struct device *device, uint64_t *ret_duration_ns,
	bool *ret_is_busy)
{
	return fill_run(&work->fill, device, ret_duration_ns);
}

static CUresult record(const struct work *work, struct stream *stream, uint64_t end_ns)
{
	struct event *event = timeline_find_event(work->event);

	if (!event)
		return CUDA_SUCCESS;
	timeline_mark(
		event, timeline_carry(stream->context->device, event->context->device, end_ns));
	return CUDA_SUCCESS;
}

static CUresult call_host(const struct work *work, struct stream *stream, uint64_t end_ns)
{
	return callback_add(stream, work->host.fn, NULL, work->host.userData, (CUstream)stream);
}

static void drop_block(struct work *work)
{
	graph_block_drop(work->alloc.block);
}

static void drop_bodies(struct work *work)
{
	conditional_drop(work->conditional);
}

static void drop_child(struct work *work)
{
	graph_free(work->child);
}

struct work work_of(CUgraphNodeType type)
{
	static const struct work_ops nothing,
		kernel = {.run = run_kernel}, copy = {.run = run_copy}, fill = {.run = run_fill},
		host = {.finish = call_host}, event = {.finish = record},
		alloc = {.drop = drop_block}, child = {.drop = drop_child},
		conditional = {.drop = drop_bodies};
	static const struct work_ops *const ops[] = {
		[CU_GRAPH_NODE_TYPE_KERNEL] = &kernel,
		[CU_GRAPH_NODE_TYPE_MEMCPY] = &copy,
		[CU_GRAPH_NODE_TYPE_MEMSET] = &fill,
		[CU_GRAPH_NODE_TYPE_HOST] = &host,
		[CU_GRAPH_NODE_TYPE_GRAPH] = &child,
		[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = &event,
		[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = &alloc,
		[CU_GRAPH_NODE_TYPE_CONDITIONAL] = &conditional,
	};
	bool is_known = (size_t)type < sizeof(ops) / sizeof(ops[0]) && ops[type];

	return (struct work){.type = type, .ops = is_known ? ops[type] : &nothing};
}

CUresult work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct work *ret_work)
{
	struct kernel *kernel = kernel_check(params->func);

	/* A node's function is no library's kernel, though a launch takes one in its place (H100, driver 580). */
	if (kernel_is_of_library(params->func))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernel)
		kernel = kernel_check(params->kern);
	if (!kernel)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->gridDimX == 0 || params->blockDimX == 0 ||
		(kernel->image && kernel->image->param_count > 0 && !params->kernelParams &&
			!params->extra))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_work = work_of(CU_GRAPH_NODE_TYPE_KERNEL);
	ret_work->kernel.params = *params;
	/* A function is of one context; a kernel runs where it was said. */
	if (!kernel->module->is_library) {
		ret_work->context = kernel->module->context;
		ret_work->kernel.params.ctx = (CUcontext)ret_work->context;
	}
	ret_work->kernel.duration_ns = kernel_duration(kernel, params->kernelParams, params->extra);
	return CUDA_SUCCESS;
}

CUresult work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *ret_work)
{
	const CUmemPoolProps *props = &params->poolProps;
	struct device *device = driver_device(props->location.id);
	CUresult result;

	if (params->bytesize == 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_work = work_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	result = graph_block_new(device, params->bytesize, &ret_work->alloc.block);
	if (result != CUDA_SUCCESS)
		return result;
	params->dptr = ret_work->alloc.block->base;
	ret_work->alloc.params = *params;
	return CUDA_SUCCESS;
}

CUresult work_free(CUdeviceptr dptr, struct work *ret_work)
{
	struct owner *owner = address_find_owner(dptr);

	if (!owner || owner->type != OWNER_GRAPH || ((struct graph_block *)owner)->base != dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_work = work_of(CU_GRAPH_NODE_TYPE_MEM_FREE);
	ret_work->freed = dptr;
	return CUDA_SUCCESS;
}

static CUresult work_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *params, struct work *ret_work)
{
	struct graph *child = graph_check(params->graph);

	if (!child || child->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
		if (!graph_can_be_cloned(child))
			return CUDA_ERROR_NOT_SUPPORTED;
		child = graph_clone(child);
	}
	if (!child)
		return CUDA_ERROR_OUT_OF_MEMORY;
	child->is_child = true;
	*ret_work = work_of(CU_GRAPH_NODE_TYPE_GRAPH);
	ret_work->child = child;
	return CUDA_SUCCESS;
}

CUresult work_from_params(CUgraphNodeParams *params, struct work *ret_work)
{
	*ret_work = work_of(params->type);
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return work_kernel(&params->kernel, ret_work);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy_from_request(&params->memcpy.copyParams, &ret_work->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		ret_work->fill = (struct fill){params->memset.dst, params->memset.pitch,
			params->memset.value, params->memset.elementSize, params->memset.width,
			params->memset.height};
		return params->memset.elementSize == 1 || params->memset.elementSize == 2 ||
				       params->memset.elementSize == 4
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_HOST:
		ret_work->host = params->host;
		return params->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return work_child(&params->graph, ret_work);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		ret_work->event = params->eventRecord.event;
		return timeline_find_event(ret_work->event) ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return work_alloc(&params->alloc, ret_work);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return work_free(params->free.dptr, ret_work);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return conditional_new(&params->conditional, &ret_work->conditional);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUcontext work_named_context(const CUgraphNodeParams *params)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return params->kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return params->memcpy.copyCtx;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return params->memset.ctx;
	default:
		return NULL;
	}
}
