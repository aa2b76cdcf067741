/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that build graphs and look at them. */
#include <stdlib.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/code/library.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/graph/conditional.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/work.h"

ENTRY_BODY(cuGraphCreate, (CUgraph * graph, unsigned int flags), (graph, flags))
{
	struct graph *made;

	if (!graph || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	made = graph_new();
	*graph = (CUgraph)made;
	return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY_BODY(cuGraphConditionalHandleCreate,
	(CUgraphConditionalHandle * handle, CUgraph graph, CUcontext context,
		unsigned int default_value, unsigned int flags),
	(handle, graph, context, default_value, flags))
{
	struct context *checked;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	/* NULL is none, also where one is current. */
	if (!context || context_check(context, &checked) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	LOCK_SCOPE(&driver.memory_lock);
	return conditional_new_handle(graph_check(graph), default_value, flags, handle);
}

ENTRY_BODY(cuGraphDestroy, (CUgraph handle), (handle))
{
	struct graph *graph;

	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	if (graph && !graph->is_child)
		graph_free(graph);
	else
		graph = NULL;
	return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult clone_graph(const struct graph *graph, CUgraph *ret_clone)
{
	struct graph *clone;

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (!graph_can_be_cloned(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	clone = graph_clone(graph);
	*ret_clone = (CUgraph)clone;
	return clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

ENTRY_BODY(cuGraphClone, (CUgraph * clone, CUgraph handle), (clone, handle))
{
	if (!clone)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	return clone_graph(graph_check(handle), clone);
}

/*
 * What a node of the program's is to do, and where. A kernel's library is loaded then, where the kernel is to run (H100, driver
 * 580).
 */
static CUresult describe(CUgraphNodeParams *params, struct work *ret_work)
{
	const CUDA_KERNEL_NODE_PARAMS_v2 *wanted = &params->kernel;
	CUresult result = work_from_params(params, ret_work), found = CUDA_SUCCESS;
	CUcontext named = work_named_context(params);
	struct kernel *kernel;
	struct module *module;

	if (result == CUDA_SUCCESS && !ret_work->context)
		found = named ? context_check(named, &ret_work->context)
			      : context_current(&ret_work->context);
	if (result != CUDA_SUCCESS || params->type != CU_GRAPH_NODE_TYPE_KERNEL)
		return result;
	kernel = kernel_check(wanted->func ? (const void *)wanted->func : wanted->kern);
	if (!kernel->module->is_library)
		return CUDA_SUCCESS;
	/* It is told, whoever named none (H200, driver 580). */
	ret_work->kernel.params.ctx = (CUcontext)ret_work->context;
	return found == CUDA_SUCCESS
		       ? library_instantiate(kernel->module, ret_work->context, &module)
		       : found;
}

/* One body for all ways to add a node. */
static CUresult add_node(CUgraphNode *ret_node, CUgraph handle, const CUgraphNode *deps,
	size_t count, CUgraphNodeParams *params)
{
	struct graph_node *node = NULL;
	struct graph *graph;
	struct work work;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!ret_node || !params || (count > 0 && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	if (graph)
		result = describe(params, &work);
	if (result == CUDA_SUCCESS && work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		graph_place(graph, (struct graph_node *const *)deps, count, &work);
		params->alloc.dptr = work.alloc.params.dptr;
	}
	if (result == CUDA_SUCCESS) {
		result = graph_add(graph, (struct graph_node *const *)deps, count, &work, &node);
		if (result != CUDA_SUCCESS)
			work_drop(&work);
	}
	if (result == CUDA_SUCCESS)
		*ret_node = (CUgraphNode)node;
	return result;
}

ENTRY_CALL(cuGraphAddNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count,
		CUgraphNodeParams *params),
	add_node(node, graph, deps, count, params))

ENTRY_CALL(cuGraphAddNode_v2,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
		size_t count, CUgraphNodeParams *params),
	add_node(node, graph, deps, count, params))

static CUDA_KERNEL_NODE_PARAMS_v2 widen_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){params->func, params->gridDimX, params->gridDimY,
		params->gridDimZ, params->blockDimX, params->blockDimY, params->blockDimZ,
		params->sharedMemBytes, params->kernelParams, params->extra, NULL, NULL};
}

static CUDA_MEMSET_NODE_PARAMS_v2 widen_memset(
	const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context)
{
	return (CUDA_MEMSET_NODE_PARAMS_v2){params->dst, params->pitch, params->value,
		params->elementSize, params->width, params->height, context};
}

static CUDA_MEMCPY_NODE_PARAMS widen_copy(const CUDA_MEMCPY3D *params, CUcontext context)
{
	return (CUDA_MEMCPY_NODE_PARAMS){.copyCtx = context, .copyParams = *params};
}

/* Rows: a call, the type of its node, the member of the parameters, its own parameters, their value. */
#define ADD_NODE(symbol, kind, member, own, value)                                            \
	ENTRY_CALL(symbol,                                                                    \
		(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count,    \
			ENTRY_UNPACK own),                                                    \
		params ? add_node(node, graph, deps, count,                                   \
				 &(CUgraphNodeParams){                                        \
					 .type = CU_GRAPH_NODE_TYPE_##kind, .member = value}) \
		       : CUDA_ERROR_INVALID_VALUE)

ADD_NODE(cuGraphAddKernelNode, KERNEL, kernel, (const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	widen_kernel(params))
ADD_NODE(cuGraphAddKernelNode_v2, KERNEL, kernel, (const CUDA_KERNEL_NODE_PARAMS_v2 *params),
	*params)
ADD_NODE(cuGraphAddMemcpyNode, MEMCPY, memcpy, (const CUDA_MEMCPY3D *params, CUcontext context),
	widen_copy(params, context))
ADD_NODE(cuGraphAddMemsetNode, MEMSET, memset,
	(const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context),
	widen_memset(params, context))
ADD_NODE(cuGraphAddHostNode, HOST, host, (const CUDA_HOST_NODE_PARAMS *params), *params)

ENTRY_CALL(cuGraphAddEmptyNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count),
	add_node(node, graph, deps, count, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY}))
ENTRY_CALL(cuGraphAddEventRecordNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count, CUevent event),
	add_node(node, graph, deps, count,
		&(CUgraphNodeParams){
			.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}}))
ENTRY_CALL(cuGraphAddChildGraphNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count, CUgraph child),
	add_node(node, graph, deps, count,
		&(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}}))
ENTRY_CALL(cuGraphAddMemFreeNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count,
		CUdeviceptr dptr),
	add_node(node, graph, deps, count,
		&(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {.dptr = dptr}}))

ENTRY_BODY(cuGraphAddMemAllocNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t count,
		CUDA_MEM_ALLOC_NODE_PARAMS *params),
	(node, graph, deps, count, params))
{
	CUgraphNodeParams wanted = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	wanted.alloc = *params;
	result = add_node(node, graph, deps, count, &wanted);
	if (result == CUDA_SUCCESS)
		params->dptr = wanted.alloc.dptr;
	return result;
}

/* Another kernel, copy or fill in a node. */
static CUresult set_node(CUgraphNode handle, CUgraphNodeParams *params)
{
	struct graph_node *node;
	struct work work;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!params || !work_can_change(params->type))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	node = graph_check_node(handle);
	if (node && node->work.type == params->type)
		result = describe(params, &work);
	if (result == CUDA_SUCCESS)
		node->work = work;
	return result;
}

ENTRY_CALL(
	cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *params), set_node(node, params))

ENTRY_CALL(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	params ? set_node(node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL,
					.kernel = widen_kernel(params)})
	       : CUDA_ERROR_INVALID_VALUE)

ENTRY_CALL(cuGraphKernelNodeSetParams_v2,
	(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params),
	params ? set_node(node,
			 &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *params})
	       : CUDA_ERROR_INVALID_VALUE)

ENTRY_CALL(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event),
	set_node(node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
			       .eventRecord = {.event = event}}))

ENTRY_BODY(cuGraphAddDependencies,
	(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count),
	(handle, from, to, count))
{
	struct graph *graph;
	CUresult result = CUDA_SUCCESS;

	if (count > 0 && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	if (!graph)
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct graph_node *first = graph_check_node(from[i]);
		struct graph_node *second = graph_check_node(to[i]);

		if (!first || !second || first == second || first->graph != graph ||
			second->graph != graph)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (!graph_depend(second, first))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

ENTRY_CALL(cuGraphAddDependencies_v2,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
		const CUgraphEdgeData *edges, size_t count),
	cuGraphAddDependencies_body(graph, from, to, count))

/* A graph with memory keeps all its nodes. */
ENTRY_BODY(cuGraphDestroyNode, (CUgraphNode handle), (handle))
{
	struct graph_node *node;
	CUresult result = CUDA_SUCCESS;

	LOCK_SCOPE(&driver.memory_lock);
	node = graph_check_node(handle);
	if (!node)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (graph_has_memory(node->graph))
		result = CUDA_ERROR_NOT_SUPPORTED;
	else
		graph_remove(node);
	return result;
}

/* Gives one more of a list; what does not fit into the program's array is only counted. */
struct list {
	CUgraphNode *nodes;
	size_t room, count;
};

static void give(struct list *list, const struct graph_node *node)
{
	if (list->nodes && list->count < list->room)
		list->nodes[list->count] = (CUgraphNode)node;
	list->count++;
}

/* An array that is too large is filled up with NULL and its count corrected. */
static void end_list(const struct list *list, size_t *ret_count)
{
	size_t filled = list->count < list->room ? list->count : list->room;

	for (size_t i = filled; list->nodes && i < list->room; i++)
		list->nodes[i] = NULL;
	*ret_count = list->nodes ? filled : list->count;
}

static CUresult get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool is_roots_only)
{
	struct list list = {.nodes = nodes};
	struct graph *graph;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	list.room = *count;
	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	for (struct graph_node *node = graph ? graph->first : NULL; node; node = node->next) {
		if (!is_roots_only || node->dep_count == 0)
			give(&list, node);
	}
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	end_list(&list, count);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	get_nodes(graph, nodes, count, false))

ENTRY_CALL(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	get_nodes(graph, nodes, count, true))

static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	struct list first = {.nodes = from}, second = {.nodes = to};
	struct graph *graph;

	if (!count || (!from) != (!to))
		return CUDA_ERROR_INVALID_VALUE;
	first.room = second.room = *count;
	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(handle);
	for (struct graph_node *node = graph ? graph->first : NULL; node; node = node->next) {
		for (size_t i = 0; i < node->dep_count; i++) {
			give(&first, node->deps[i]);
			give(&second, node);
		}
	}
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	end_list(&first, count);
	end_list(&second, count);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
	get_edges(graph, from, to, count))

static void clear_edges(CUgraphEdgeData *edges, const size_t *count)
{
	for (size_t i = 0; edges && i < *count; i++)
		edges[i] = (CUgraphEdgeData){.type = 0};
}

ENTRY_BODY(cuGraphGetEdges_v2,
	(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count),
	(graph, from, to, edges, count))
{
	CUresult result = get_edges(graph, from, to, count);

	if (result == CUDA_SUCCESS)
		clear_edges(edges, count);
	return result;
}

static CUresult get_dependencies(CUgraphNode handle, CUgraphNode *nodes, size_t *count)
{
	struct list list = {.nodes = nodes};
	struct graph_node *node;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	list.room = *count;
	LOCK_SCOPE(&driver.memory_lock);
	node = graph_check_node(handle);
	for (size_t i = 0; node && i < node->dep_count; i++)
		give(&list, node->deps[i]);
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	end_list(&list, count);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count),
	get_dependencies(node, nodes, count))

ENTRY_BODY(cuGraphNodeGetDependencies_v2,
	(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count),
	(node, nodes, edges, count))
{
	CUresult result = get_dependencies(node, nodes, count);

	if (result == CUDA_SUCCESS)
		clear_edges(edges, count);
	return result;
}

/* The work of a node, if it is of this type. */
static CUresult read_work(CUgraphNode handle, CUgraphNodeType type, struct work *ret_work)
{
	struct graph_node *node;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	LOCK_SCOPE(&driver.memory_lock);
	node = graph_check_node(handle);
	if (node && node->work.type == type) {
		*ret_work = node->work;
		result = CUDA_SUCCESS;
	}
	return result;
}

ENTRY_BODY(cuGraphNodeGetType, (CUgraphNode handle, CUgraphNodeType *type), (handle, type))
{
	struct graph_node *node;

	if (!type)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	node = graph_check_node(handle);
	if (node)
		*type = node->work.type;
	return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY_BODY(cuGraphKernelNodeGetParams, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params),
	(node, params))
{
	struct work work;
	CUresult result = read_work(node, CU_GRAPH_NODE_TYPE_KERNEL, &work);
	const CUDA_KERNEL_NODE_PARAMS_v2 *all = &work.kernel.params;

	if (result != CUDA_SUCCESS || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = (CUDA_KERNEL_NODE_PARAMS_v1){all->func, all->gridDimX, all->gridDimY,
		all->gridDimZ, all->blockDimX, all->blockDimY, all->blockDimZ, all->sharedMemBytes,
		all->kernelParams, all->extra};
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params),
	(node, params))
{
	struct work work;
	CUresult result = read_work(node, CU_GRAPH_NODE_TYPE_KERNEL, &work);

	if (result != CUDA_SUCCESS || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = work.kernel.params;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params),
	(node, params))
{
	struct work work;
	CUresult result = read_work(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &work);

	if (result != CUDA_SUCCESS || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = work.alloc.params;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *dptr), (node, dptr))
{
	struct work work;
	CUresult result = read_work(node, CU_GRAPH_NODE_TYPE_MEM_FREE, &work);

	if (result != CUDA_SUCCESS || !dptr)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = work.freed;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph), (node, graph))
{
	struct work work;
	CUresult result = read_work(node, CU_GRAPH_NODE_TYPE_GRAPH, &work);

	if (result != CUDA_SUCCESS || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = (CUgraph)work.child;
	return CUDA_SUCCESS;
}
