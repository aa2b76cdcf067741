/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs. */
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/exec.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult make(
	struct context *context, CUgraph handle, unsigned long long flags, struct exec **ret_exec)
{
	struct graph *graph;

	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	return graph && !graph->is_child ? exec_make(context, graph, flags, ret_exec)
					 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
	struct context *context;
	struct exec *exec;
	CUresult result = context_current(&context);

	if (result == CUDA_SUCCESS && (!ret_exec || flags > 15))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = make(context, handle, flags, &exec);
	if (result != CUDA_SUCCESS)
		return result;
	result = exec_make_ready(exec, context);
	if (result == CUDA_SUCCESS) {
		*ret_exec = (CUgraphExec)exec;
		return CUDA_SUCCESS;
	}
	LOCK_SCOPE(&driver.memory_lock);
	exec_end(exec);
	return result;
}

ENTRY_CALL(cuGraphInstantiate,
	(CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	instantiate(exec, graph, 0))

ENTRY_CALL(cuGraphInstantiate_v2,
	(CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	instantiate(exec, graph, 0))

ENTRY_BODY(cuGraphInstantiateWithFlags,
	(CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))
{
	/* Only the call with parameters knows the stream of an upload. */
	if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(exec, graph, flags);
}

static CUresult upload(struct stream *stream, CUgraphExec handle)
{
	struct exec *exec;

	LOCK_SCOPE(&driver.memory_lock);
	exec = exec_check(handle);
	return exec ? exec_map(exec, stream) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY_STREAM(cuGraphUpload, _ptsz, handle, (CUgraphExec exec, CUstream handle), (exec, handle))
{
	return upload(stream, exec);
}

ENTRY_FORMS(cuGraphInstantiateWithParams, _ptsz,
	(CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params))
{
	struct stream *stream = NULL;
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	result = instantiate(exec, graph, params->flags);
	if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		result = context_stream(params->hUploadStream, is_thread, &stream);
	if (stream && result == CUDA_SUCCESS)
		result = upload(stream, *exec);
	if (result == CUDA_SUCCESS)
		params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return result;
}

ENTRY_BODY(cuGraphExecDestroy, (CUgraphExec handle), (handle))
{
	struct exec *exec;

	LOCK_SCOPE(&driver.memory_lock);
	exec = exec_check(handle);
	if (exec)
		exec_end(exec);
	return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* After a change. */
static CUresult make_ready(CUgraphExec exec)
{
	struct context *context;
	CUresult result = context_current(&context);

	return result == CUDA_SUCCESS ? exec_make_ready((struct exec *)exec, context) : result;
}

static CUresult update_exec(
	CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResult *ret_result)
{
	struct graph *graph;
	struct exec *exec;

	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(graph_handle);
	exec = exec_check(exec_handle);
	if (graph && exec)
		*ret_result = exec_update(exec, graph);
	if (!graph || !exec)
		return CUDA_ERROR_INVALID_VALUE;
	return *ret_result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
							   : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult update_and_make_ready(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult *ret_result)
{
	CUresult result = update_exec(exec, graph, ret_result);

	return result == CUDA_SUCCESS ? make_ready(exec) : result;
}

ENTRY_BODY(cuGraphExecUpdate,
	(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *how),
	(exec, graph, error_node, how))
{
	if (!how)
		return CUDA_ERROR_INVALID_VALUE;
	if (error_node)
		*error_node = NULL;
	return update_and_make_ready(exec, graph, how);
}

ENTRY_BODY(cuGraphExecUpdate_v2,
	(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), (exec, graph, info))
{
	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){.errorNode = NULL};
	return update_and_make_ready(exec, graph, &info->result);
}

/* Another work of the same type in the place of a node's. */
static CUresult set_work(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeParams *params)
{
	CUcontext named = params ? work_named_context(params) : NULL;
	struct work work;
	struct exec *exec;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!params || !work_can_change(params->type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	exec = exec_check(handle);
	for (size_t i = 0; exec && i < exec->count; i++) {
		struct step *step = &exec->steps[i];

		if ((CUgraphNode)step->node != node_handle || step->work.type != params->type)
			continue;
		result = work_from_params(params, &work);
		if (result == CUDA_SUCCESS && !work.context && named)
			result = context_check(named, &work.context);
		if (result != CUDA_SUCCESS)
			continue;
		if (!work.context)
			work.context = step->work.context;
		step->work = work;
	}
	return result;
}

static CUresult set_and_make_ready(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	CUresult result = set_work(exec, node, params);

	return result == CUDA_SUCCESS ? make_ready(exec) : result;
}

ENTRY_CALL(cuGraphExecNodeSetParams,
	(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params),
	set_and_make_ready(exec, node, params))

ENTRY_CALL(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event),
	set_and_make_ready(exec, node,
		&(CUgraphNodeParams){
			.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}}))

ENTRY_BODY(cuGraphExecKernelNodeSetParams,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	(exec, node, params))
{
	CUgraphNodeParams wanted = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&wanted.kernel, params, sizeof(*params));
	return set_and_make_ready(exec, node, &wanted);
}

ENTRY_BODY(cuGraphExecKernelNodeSetParams_v2,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params),
	(exec, node, params))
{
	CUgraphNodeParams wanted = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	wanted.kernel = *params;
	return set_and_make_ready(exec, node, &wanted);
}

/* The child's nodes, which come just before its own step. */
static CUresult set_child(CUgraphExec handle, CUgraphNode node_handle, CUgraph child_handle)
{
	struct graph_node *node;
	struct graph *child;
	struct exec *exec;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	LOCK_SCOPE(&driver.memory_lock);
	exec = exec_check(handle);
	child = graph_check(child_handle);
	node = child ? child->first : NULL;
	for (size_t i = 0; exec && child && i < exec->count; i++) {
		if ((CUgraphNode)exec->steps[i].node != node_handle || i < child->node_count)
			continue;
		for (size_t k = i - child->node_count; k < i && node; k++) {
			if (node->work.type == exec->steps[k].work.type)
				exec->steps[k].work = node->work;
			node = node->next;
		}
		result = CUDA_SUCCESS;
	}
	return result;
}

ENTRY_BODY(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
	(exec, node, child))
{
	CUresult result = set_child(exec, node, child);

	return result == CUDA_SUCCESS ? make_ready(exec) : result;
}

ENTRY_STREAM(cuGraphLaunch, _ptsz, handle, (CUgraphExec exec, CUstream handle), (exec, handle))
{
	/* Becoming part of another graph is not simulated. */
	return capture_is_on(stream) ? capture_forbid(stream) : exec_launch(exec, stream);
}
