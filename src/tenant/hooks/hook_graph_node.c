/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the nodes of graphs, before anything executes them. */
#include "tenant/hooks/hook.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"
#include "tenant/memory/code.h"
#include "tenant/memory/graph_survey.h"
#include "tenant/memory/makings.h"

/* Nothing tells a conditional node's bodies later, and their kernels count, too. */
static void added(CUgraphNode made, const CUgraphNodeParams *params, CUgraphNodeParams *ret_params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && state_enter() == STATE_OPEN)
		graph_survey_keep_bodies(made, &params->conditional);
	/* The driver answers in the parameters, too. */
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
		params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		*ret_params = *params;
}

/*
 * Before a kernel comes into a graph: the driver loads its library then, and not only when the graph is instantiated
 * (H100, driver 580). A function is of one context, and what else the program says is left out: the driver, which does not heed it,
 * might tell it later. What is prepared stays pinned until the driver has it.
 */
static CUresult prepare_kernel(CUDA_KERNEL_NODE_PARAMS_v2 *params, struct code_pin *ret_pin)
{
	CUfunction function = graph_survey_function(params);
	bool is_entered;
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	is_entered = current_enter(params->ctx);
	r = code_pins_function(function, ret_pin);
	if (r == CUDA_SUCCESS && !marks_is_launched(function, NULL))
		r = code_prepare(function, ret_pin);
	current_leave(is_entered);
	if (params->func)
		params->ctx = NULL;
	return r;
}

static CUresult prepare_old_kernel(
	const CUDA_KERNEL_NODE_PARAMS_v1 *params, struct code_pin *ret_pin)
{
	return prepare_kernel(&(CUDA_KERNEL_NODE_PARAMS_v2){.func = params->func}, ret_pin);
}

static CUresult prepare_node(CUgraphNodeParams *params, struct code_pin *ret_pin)
{
	if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return own_events_prepare(params->eventRecord.event);
	return params->type == CU_GRAPH_NODE_TYPE_KERNEL ? prepare_kernel(&params->kernel, ret_pin)
							 : CUDA_SUCCESS;
}

/* The driver's call that changes a graph, or ends one, whose handle another one may have then. */
#define CHANGE(r, call)                              \
	do {                                         \
		if ((r) != CUDA_SUCCESS)             \
			break;                       \
		if (!makings_change_begin())         \
			return CUDA_ERROR_NOT_READY; \
		(r) = (call);                        \
		makings_change_end();                \
	} while (0)

/* The rest of a hook that adds a node: the driver's call. */
#define ADD(real, ...)                                          \
	{                                                       \
		CUgraphNodeParams wanted;                       \
		CODE_PIN_SCOPE pin = CODE_PIN_NULL;             \
		CUgraphNode made;                               \
		CUresult r;                                     \
                                                                \
		if (!node || !params)                           \
			return real(node, __VA_ARGS__, params); \
		wanted = *params;                               \
		r = prepare_node(&wanted, &pin);                \
		CHANGE(r, real(&made, __VA_ARGS__, &wanted));   \
		if (r == CUDA_SUCCESS)                          \
			added(made, &wanted, params);           \
		return HOOK_GIVE(r, node, made);                \
	}

HOOK_BODY(cuGraphAddNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies,
	size_t, count, CUgraphNodeParams *, params)
ADD(cuda.cuGraphAddNode, graph, dependencies, count)

HOOK_BODY(cuGraphAddNode_v2, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies,
	const CUgraphEdgeData *, edges, size_t, count, CUgraphNodeParams *, params)
ADD(cuda.cuGraphAddNode_v2, graph, dependencies, edges, count)

/* The rest of a hook that puts a kernel into a graph: how it is prepared, and the driver's call. */
#define PUT_KERNEL(version, prepare, real, ...)           \
	{                                                 \
		CUDA_KERNEL_NODE_PARAMS_##version wanted; \
		CODE_PIN_SCOPE pin = CODE_PIN_NULL;       \
		CUresult r;                               \
                                                          \
		if (!params)                              \
			return real(__VA_ARGS__, params); \
		wanted = *params;                         \
		r = prepare(&wanted, &pin);               \
		CHANGE(r, real(__VA_ARGS__, &wanted));    \
		return r;                                 \
	}

HOOK_BODY(cuGraphAddKernelNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, const CUDA_KERNEL_NODE_PARAMS_v1 *, params)
PUT_KERNEL(v1, prepare_old_kernel, cuda.cuGraphAddKernelNode, node, graph, dependencies, count)

HOOK_BODY(cuGraphAddKernelNode_v2, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, const CUDA_KERNEL_NODE_PARAMS_v2 *, params)
PUT_KERNEL(v2, prepare_kernel, cuda.cuGraphAddKernelNode_v2, node, graph, dependencies, count)

HOOK_BODY(cuGraphKernelNodeSetParams, CUgraphNode, node, const CUDA_KERNEL_NODE_PARAMS_v1 *, params)
PUT_KERNEL(v1, prepare_old_kernel, cuda.cuGraphKernelNodeSetParams, node)

HOOK_BODY(cuGraphKernelNodeSetParams_v2, CUgraphNode, node, const CUDA_KERNEL_NODE_PARAMS_v2 *,
	params)
PUT_KERNEL(v2, prepare_kernel, cuda.cuGraphKernelNodeSetParams_v2, node)

HOOK_BODY(cuGraphNodeSetParams, CUgraphNode, node, CUgraphNodeParams *, params)
{
	CODE_PIN_SCOPE pin = CODE_PIN_NULL;
	CUresult r;

	if (!params)
		return cuda.cuGraphNodeSetParams(node, params);
	HOOK_COPY(params);
	r = prepare_node(params, &pin);
	CHANGE(r, cuda.cuGraphNodeSetParams(node, params));
	return r;
}

HOOK_BODY(cuGraphAddChildGraphNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, CUgraph, child)
{
	CUresult r = CUDA_SUCCESS;

	CHANGE(r, cuda.cuGraphAddChildGraphNode(node, graph, dependencies, count, child));
	return r;
}

HOOK_BODY(cuGraphAddMemAllocNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, CUDA_MEM_ALLOC_NODE_PARAMS *, params)
{
	CUresult r = CUDA_SUCCESS;

	CHANGE(r, cuda.cuGraphAddMemAllocNode(node, graph, dependencies, count, params));
	return r;
}

HOOK_BODY(cuGraphDestroyNode, CUgraphNode, node)
{
	CUresult r = CUDA_SUCCESS;

	CHANGE(r, cuda.cuGraphDestroyNode(node));
	return r;
}

HOOK_BODY(cuGraphDestroy, CUgraph, graph)
{
	CUresult r = CUDA_SUCCESS;

	CHANGE(r, cuda.cuGraphDestroy(graph));
	return r;
}
