/* SPDX-License-Identifier: Apache-2.0 */
/* What the parameters of a node mean. */
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/code/module.h"

CUresult work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct work *ret_work)
{
	struct kernel *kernel = module_check_kernel(params->func);

	if (!kernel)
		kernel = module_check_kernel(params->kern);
	if (!kernel)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->gridDimX == 0 || params->blockDimX == 0 ||
		(kernel->image && kernel->image->param_count > 0 && !params->kernelParams &&
			!params->extra))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_work = (struct work){.type = CU_GRAPH_NODE_TYPE_KERNEL};
	ret_work->kernel.params = *params;
	ret_work->kernel.duration_ns =
		module_kernel_duration(kernel, params->kernelParams, params->extra);
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
	*ret_work = (struct work){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
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
	*ret_work = (struct work){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .freed = dptr};
	return CUDA_SUCCESS;
}

static CUresult work_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *params, struct work *ret_work)
{
	struct graph *child = graph_check(params->graph);

	if (!child || child->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
		if (graph_has_memory(child))
			return CUDA_ERROR_NOT_SUPPORTED;
		child = graph_clone(child);
	}
	if (!child)
		return CUDA_ERROR_OUT_OF_MEMORY;
	child->is_child = true;
	*ret_work = (struct work){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child};
	return CUDA_SUCCESS;
}

CUresult work_from_params(CUgraphNodeParams *params, struct work *ret_work)
{
	*ret_work = (struct work){.type = params->type};
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
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

void work_drop(struct work *work)
{
	if (work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		graph_block_drop(work->alloc.block);
	else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		graph_free(work->child);
}
