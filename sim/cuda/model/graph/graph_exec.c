/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiated, uploaded, launched, updated. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph_exec.h"
#include "sim/cuda/model/code/module.h"

/*
 * An executable graph is a list of steps, one for each node and in an order in which they may run;
 * the nodes of a child graph come between those of its parent. It takes a stream as long as its
 * longest path.
 */

/*
 * As measured on an H200 with driver 580: 5,000 nodes take 14 MiB, the next ones 12 MiB, and few
 * nothing; it stays with the context.
 */
#define NODE_BYTES	2560u
#define FREE_BYTES	(64u << 10)
#define CODE_STEP_BYTES ((uint64_t)2 << 20)

static struct exec *spare;

struct exec *exec_check(CUgraphExec handle)
{
	struct exec *exec = (struct exec *)handle;

	return exec && exec->magic == EXEC_MAGIC ? exec : NULL;
}

static size_t count_nodes(const struct graph *graph)
{
	size_t count = graph->node_count;

	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			count += count_nodes(node->work.child);
	}
	return count;
}

static bool depend(struct step *step, size_t on)
{
	size_t *grown = realloc(step->deps, (step->dep_count + 1) * sizeof(*grown));

	if (!grown)
		return false;
	step->deps = grown;
	step->deps[step->dep_count++] = on;
	return true;
}

static CUresult add_steps(struct exec *exec, struct graph *graph, const struct step *parent);

static bool add_dependencies(
	struct step *step, const struct graph_node *node, const struct step *parent)
{
	bool is_good = true;

	for (size_t i = 0; i < node->dep_count && is_good; i++)
		is_good = depend(step, node->deps[i]->place);
	for (size_t i = 0; parent && i < parent->dep_count && is_good; i++)
		is_good = depend(step, parent->deps[i]);
	return is_good;
}

/* The step of one node; a child graph's comes after those of its nodes and waits for them all. */
static CUresult add_step(struct exec *exec, struct graph_node *node, const struct step *parent)
{
	struct step step = {.node = node, .work = node->work};
	CUresult result = CUDA_SUCCESS;
	size_t first = exec->count;

	if (!add_dependencies(&step, node, parent))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && step.work.type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = add_steps(exec, node->work.child, &step);
	for (size_t i = first; i < exec->count && result == CUDA_SUCCESS; i++)
		result = depend(&step, i) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(step.deps);
		return result;
	}
	if (step.work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		step.work.alloc.block->refs++;
		step.work.alloc.block->is_instantiated = true;
	}
	node->place = exec->count;
	exec->steps[exec->count++] = step;
	return CUDA_SUCCESS;
}

static bool is_ready(const struct graph_node *node)
{
	for (size_t i = 0; i < node->dep_count; i++) {
		if (node->deps[i]->place == SIZE_MAX)
			return false;
	}
	return true;
}

/* Each node after those it depends on. What is left over depends on itself. */
static CUresult add_steps(struct exec *exec, struct graph *graph, const struct step *parent)
{
	size_t left = graph->node_count, before;

	for (struct graph_node *node = graph->first; node; node = node->next)
		node->place = SIZE_MAX;
	do {
		before = left;
		for (struct graph_node *node = graph->first; node; node = node->next) {
			CUresult result;

			if (node->place != SIZE_MAX || !is_ready(node))
				continue;
			result = add_step(exec, node, parent);
			if (result != CUDA_SUCCESS)
				return result;
			left--;
		}
	} while (left > 0 && left < before);
	return left == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct graph_block *exec_block(const struct step *step)
{
	return step->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? step->work.alloc.block : NULL;
}

/* Whether a step of the graph frees the block before step number `before`. */
static bool is_freed_within(const struct exec *exec, const struct graph_block *block, size_t before)
{
	for (size_t i = 0; i < before; i++) {
		if (exec->steps[i].work.type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
			exec->steps[i].work.freed == block->base)
			return true;
	}
	return false;
}

struct mapping *exec_mapping(struct exec *exec, struct device *device)
{
	struct mapping *mapping = exec->mappings;

	while (mapping && mapping->device != device)
		mapping = mapping->next;
	if (mapping)
		return mapping;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return NULL;
	mapping->device = device;
	mapping->next = exec->mappings;
	exec->mappings = mapping;
	return mapping;
}

/* The first place in the graph's memory where nothing lies that is allocated at that step. */
static uint64_t find_offset(const struct exec *exec, size_t step)
{
	const struct graph_block *block = exec_block(&exec->steps[step]);
	uint64_t offset = 0;
	bool is_moved;

	do {
		is_moved = false;
		for (size_t i = 0; i < step; i++) {
			const struct graph_block *other = exec_block(&exec->steps[i]);

			if (!other || other->device != block->device ||
				offset >= other->offset + other->bytes ||
				offset + block->bytes <= other->offset ||
				is_freed_within(exec, other, step))
				continue;
			offset = (other->offset + other->bytes + HEAP_GRAIN - 1) / HEAP_GRAIN *
				 HEAP_GRAIN;
			is_moved = true;
		}
	} while (is_moved);
	return offset;
}

static CUresult lay_out_memory(struct exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);
		struct mapping *mapping;

		if (!block)
			continue;
		mapping = exec_mapping(exec, block->device);
		if (!mapping)
			return CUDA_ERROR_OUT_OF_MEMORY;
		block->offset = find_offset(exec, i);
		if (block->offset + block->bytes > mapping->bytes)
			mapping->bytes = block->offset + block->bytes;
	}
	return CUDA_SUCCESS;
}

static void end(struct exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);

		free(exec->steps[i].deps);
		if (!block)
			continue;
		block->is_instantiated = false;
		graph_block_drop(block);
	}
	while (exec->mappings) {
		struct mapping *next = exec->mappings->next;

		graph_unmap(exec->mappings);
		free(exec->mappings);
		exec->mappings = next;
	}
	free(exec->steps);
	exec->magic = 0;
	exec->next = spare;
	spare = exec;
}

static struct exec *take_exec(size_t step_count)
{
	struct exec *exec = spare;

	if (exec)
		spare = exec->next;
	else
		exec = malloc(sizeof(*exec));
	if (!exec)
		return NULL;
	*exec = (struct exec){.magic = EXEC_MAGIC};
	exec->steps = calloc(step_count + 1, sizeof(*exec->steps));
	if (exec->steps)
		return exec;
	end(exec);
	return NULL;
}

/* The driver's own memory for the nodes. */
static CUresult take_code(struct context *context, size_t node_count)
{
	uint64_t used = context->graph_code_bytes + node_count * NODE_BYTES;
	uint64_t wanted = used <= FREE_BYTES ? 0 : used - FREE_BYTES;
	uint64_t growth;

	wanted = (wanted + CODE_STEP_BYTES - 1) / CODE_STEP_BYTES * CODE_STEP_BYTES;
	growth = wanted > context->graph_bytes ? wanted - context->graph_bytes : 0;
	if (growth > 0 && context_keep(context, MACHINE_GRAPH, growth) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->graph_code_bytes = used;
	context->graph_bytes += growth;
	return CUDA_SUCCESS;
}

/* What launches of its kernels will need is there from now on. */
static CUresult make_ready(const struct exec *exec, struct context *context)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		const struct work *work = &exec->steps[i].work;
		struct kernel *kernel;

		if (work->type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		kernel = module_check_kernel(work->kernel.params.func);
		if (!kernel)
			kernel = module_check_kernel(work->kernel.params.kern);
		if (!kernel)
			return CUDA_ERROR_INVALID_VALUE;
		result = module_make_ready(kernel, context);
		if (result == CUDA_SUCCESS)
			result = context_make_local_room(context, module_frame_bytes(kernel));
	}
	return result;
}

static bool is_instantiated(const struct graph *graph)
{
	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if ((node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
			    node->work.alloc.block->is_instantiated) ||
			(node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
				is_instantiated(node->work.child)))
			return true;
	}
	return false;
}

/* Under memory_lock. */
static CUresult make(struct context *context, struct graph *graph, unsigned long long flags,
	struct exec **ret_exec)
{
	size_t count = count_nodes(graph);
	struct exec *exec;
	CUresult result;

	/* There is at most one executable graph of a graph with memory. */
	if (is_instantiated(graph))
		return CUDA_ERROR_INVALID_VALUE;
	exec = take_exec(count);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->flags = flags;
	result = add_steps(exec, graph, NULL);
	if (result == CUDA_SUCCESS)
		result = lay_out_memory(exec);
	if (result == CUDA_SUCCESS)
		result = take_code(context, count);
	if (result == CUDA_SUCCESS)
		*ret_exec = exec;
	else
		end(exec);
	return result;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
	struct context *context;
	struct exec *exec = NULL;
	struct graph *graph;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_exec || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	graph = graph_check(handle);
	if (!graph || graph->is_child)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = make(context, graph, flags, &exec);
	pthread_mutex_unlock(&driver.memory_lock);
	if (result != CUDA_SUCCESS)
		return result;
	result = make_ready(exec, context);
	if (result == CUDA_SUCCESS) {
		*ret_exec = (CUgraphExec)exec;
		return result;
	}
	pthread_mutex_lock(&driver.memory_lock);
	end(exec);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuGraphInstantiate,
	(CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	(exec, graph, error_node, log, log_bytes))
{
	return instantiate(exec, graph, 0);
}

ENTRY_BODY(cuGraphInstantiate_v2,
	(CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	(exec, graph, error_node, log, log_bytes))
{
	return instantiate(exec, graph, 0);
}

ENTRY_BODY(cuGraphInstantiateWithFlags,
	(CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))
{
	/* Only the call with parameters knows the stream of an upload. */
	if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(exec, graph, flags);
}

static CUresult upload(bool is_thread, CUgraphExec handle, CUstream stream_handle)
{
	struct context *context;
	struct stream *stream;
	struct exec *exec;
	CUresult result = context_stream(stream_handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver.memory_lock);
	exec = exec_check(handle);
	result = exec ? exec_map(exec, stream) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_FORMS(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream))
{
	return upload(is_thread, exec, stream);
}

ENTRY_FORMS(cuGraphInstantiateWithParams, _ptsz,
	(CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params))
{
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	result = instantiate(exec, graph, params->flags);
	if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
		result = upload(is_thread, *exec, params->hUploadStream);
	if (result == CUDA_SUCCESS)
		params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return result;
}

ENTRY_BODY(cuGraphExecDestroy, (CUgraphExec handle), (handle))
{
	struct exec *exec;

	pthread_mutex_lock(&driver.memory_lock);
	exec = exec_check(handle);
	if (exec)
		end(exec);
	pthread_mutex_unlock(&driver.memory_lock);
	return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Takes over the works of a graph of the same shape. Under memory_lock. */
static CUgraphExecUpdateResult update(struct exec *exec, struct graph *graph)
{
	struct exec *fresh;
	CUresult result;

	if (exec->mappings || graph_has_memory(graph))
		return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
	fresh = take_exec(count_nodes(graph));
	if (!fresh)
		return CU_GRAPH_EXEC_UPDATE_ERROR;
	result = add_steps(fresh, graph, NULL);
	if (result != CUDA_SUCCESS || fresh->count != exec->count) {
		end(fresh);
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	for (size_t i = 0; i < exec->count; i++) {
		if (exec->steps[i].work.type != fresh->steps[i].work.type ||
			exec->steps[i].dep_count != fresh->steps[i].dep_count) {
			end(fresh);
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		}
	}
	for (size_t i = 0; i < exec->count; i++)
		exec->steps[i].work = fresh->steps[i].work;
	end(fresh);
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update_exec(
	CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResult *ret_result)
{
	struct graph *graph;
	struct exec *exec;

	pthread_mutex_lock(&driver.memory_lock);
	graph = graph_check(graph_handle);
	exec = exec_check(exec_handle);
	if (graph && exec)
		*ret_result = update(exec, graph);
	pthread_mutex_unlock(&driver.memory_lock);
	if (!graph || !exec)
		return CUDA_ERROR_INVALID_VALUE;
	return *ret_result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
							   : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

ENTRY_BODY(cuGraphExecUpdate,
	(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *how),
	(exec, graph, error_node, how))
{
	if (!how)
		return CUDA_ERROR_INVALID_VALUE;
	if (error_node)
		*error_node = NULL;
	return update_exec(exec, graph, how);
}

ENTRY_BODY(cuGraphExecUpdate_v2,
	(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), (exec, graph, info))
{
	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){.errorNode = NULL};
	return update_exec(exec, graph, &info->result);
}

/* Another work of the same type in the place of a node's. */
static CUresult set_work(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeParams *params)
{
	struct work work;
	struct exec *exec;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!params || params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		params->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
		params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	exec = exec_check(handle);
	for (size_t i = 0; exec && i < exec->count; i++) {
		struct step *step = &exec->steps[i];

		if ((CUgraphNode)step->node != node_handle || step->work.type != params->type)
			continue;
		result = work_from_params(params, &work);
		if (result == CUDA_SUCCESS)
			step->work = work;
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuGraphExecNodeSetParams,
	(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params), (exec, node, params))
{
	return set_work(exec, node, params);
}

ENTRY_BODY(cuGraphExecKernelNodeSetParams,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	(exec, node, params))
{
	CUgraphNodeParams wanted = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&wanted.kernel, params, sizeof(*params));
	return set_work(exec, node, &wanted);
}

ENTRY_BODY(cuGraphExecKernelNodeSetParams_v2,
	(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params),
	(exec, node, params))
{
	CUgraphNodeParams wanted = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	wanted.kernel = *params;
	return set_work(exec, node, &wanted);
}

/* The child's nodes, which come just before its own step. */
ENTRY_BODY(cuGraphExecChildGraphNodeSetParams,
	(CUgraphExec handle, CUgraphNode node_handle, CUgraph child_handle),
	(handle, node_handle, child_handle))
{
	struct graph_node *node;
	struct graph *child;
	struct exec *exec;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&driver.memory_lock);
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
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}
