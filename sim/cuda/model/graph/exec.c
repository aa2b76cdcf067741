/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiated, uploaded, launched, updated. */
#include "sim/cuda/model/graph/exec.h"

#include <stdlib.h>

#include "sim/cuda/model/code/kernel.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/conditional.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/graph_memory.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/timeline.h"

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

/*
 * The nodes of a graph and those in it; for the steps, those of a conditional body as often as it runs. One
 * that does not run has its steps, too: the card makes its kernels ready.
 */
static size_t count_nodes(const struct graph *graph, bool is_for_steps)
{
	size_t count = graph->node_count;

	for (const struct graph_node *node = graph->first; node; node = node->next) {
		const struct conditional *conditional = node->work.conditional;

		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
			count += count_nodes(node->work.child, is_for_steps);
		if (node->work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
			continue;
		for (size_t i = 0; i < conditional_body_count(conditional); i++) {
			unsigned int rounds = conditional_rounds(conditional, i);

			count += count_nodes(conditional_body(conditional, i), is_for_steps) *
				 (is_for_steps && rounds > 1 ? rounds : 1);
		}
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

/* The step waits for all that were added since. */
static CUresult depend_on_all(struct step *step, const struct exec *exec, size_t first)
{
	for (size_t i = first; i < exec->count; i++)
		if (!depend(step, i))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* The steps of a body, once and again, each round after the one before. */
static CUresult add_rounds(
	struct exec *exec, struct graph *body, unsigned int rounds, struct step *step)
{
	bool is_left_out = step->is_left_out;
	CUresult result = CUDA_SUCCESS;

	if (graph_has_memory(body))
		return CUDA_ERROR_INVALID_VALUE;
	step->is_left_out = is_left_out || !rounds;
	for (unsigned int i = 0; i < (rounds ? rounds : 1) && result == CUDA_SUCCESS; i++) {
		size_t first = exec->count;

		result = add_steps(exec, body, step);
		if (result == CUDA_SUCCESS)
			result = depend_on_all(step, exec, first);
	}
	step->is_left_out = is_left_out;
	return result;
}

static CUresult add_bodies(
	struct exec *exec, const struct conditional *conditional, struct step *step)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < conditional_body_count(conditional) && result == CUDA_SUCCESS; i++)
		result = add_rounds(exec, conditional_body(conditional, i),
			conditional_rounds(conditional, i), step);
	return result;
}

/* The step of one node; a child graph's comes after those of its nodes and waits for them all. */
static CUresult add_step(struct exec *exec, struct graph_node *node, const struct step *parent)
{
	struct step step = {
		.node = node, .work = node->work, .is_left_out = parent && parent->is_left_out};
	CUresult result = CUDA_SUCCESS;
	size_t first = exec->count;

	if (!add_dependencies(&step, node, parent))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && step.work.type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = add_steps(exec, node->work.child, &step);
	if (result == CUDA_SUCCESS && step.work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = add_bodies(exec, step.work.conditional, &step);
	else if (result == CUDA_SUCCESS)
		result = depend_on_all(&step, exec, first);
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

bool exec_has_block(
	const struct exec *exec, const struct graph_block *block, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (exec_block(&exec->steps[i]) == block)
			return true;
	return false;
}

struct graph_mapping *exec_mapping(struct exec *exec, struct device *device)
{
	struct graph_mapping *mapping = exec->mappings;

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

static CUresult lay_out_memory(struct exec *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		struct graph_block *block = exec_block(&exec->steps[i]);
		struct graph_mapping *mapping;

		if (!block || exec_has_block(exec, block, 0, i))
			continue;
		mapping = exec_mapping(exec, block->device);
		if (!mapping)
			return CUDA_ERROR_OUT_OF_MEMORY;
		block->offset = (mapping->bytes + HEAP_GRAIN - 1) / HEAP_GRAIN * HEAP_GRAIN;
		mapping->bytes = block->offset + block->bytes;
	}
	return CUDA_SUCCESS;
}

void exec_end(struct exec *exec)
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
		struct graph_mapping *next = exec->mappings->next;

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
	exec_end(exec);
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
	if (growth > 0 && room_keep(context, MACHINE_GRAPH, growth) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->graph_code_bytes = used;
	context->graph_bytes += growth;
	return CUDA_SUCCESS;
}

CUresult exec_make_ready(const struct exec *exec, struct context *current)
{
	CUresult result = CUDA_SUCCESS;
	struct context *context;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		const struct work *work = &exec->steps[i].work;
		struct kernel *kernel;

		if (work->type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		kernel = kernel_check(work->kernel.params.func);
		if (!kernel)
			kernel = kernel_check(work->kernel.params.kern);
		if (!kernel)
			return CUDA_ERROR_INVALID_VALUE;
		context = (struct context *)work->kernel.params.ctx;
		if (!context)
			context = current;
		else if (!context_is_alive(context))
			result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
		if (result == CUDA_SUCCESS)
			result = kernel_make_ready(kernel, context);
		if (result == CUDA_SUCCESS)
			result = room_make_local(context, kernel_frame_bytes(kernel));
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

CUresult exec_make(struct context *context, struct graph *graph, unsigned long long flags,
	struct exec **ret_exec)
{
	size_t count = count_nodes(graph, false);
	struct exec *exec;
	CUresult result;

	/* There is at most one executable graph of a graph with memory. */
	if (is_instantiated(graph))
		return CUDA_ERROR_INVALID_VALUE;
	exec = take_exec(count_nodes(graph, true));
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
		exec_end(exec);
	return result;
}

CUgraphExecUpdateResult exec_update(struct exec *exec, struct graph *graph)
{
	struct exec *fresh;
	CUresult result;

	if (exec->mappings || graph_has_memory(graph))
		return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
	fresh = take_exec(count_nodes(graph, true));
	if (!fresh)
		return CU_GRAPH_EXEC_UPDATE_ERROR;
	result = add_steps(fresh, graph, NULL);
	if (result != CUDA_SUCCESS || fresh->count != exec->count) {
		exec_end(fresh);
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	for (size_t i = 0; i < exec->count; i++) {
		if (exec->steps[i].work.type != fresh->steps[i].work.type ||
			exec->steps[i].dep_count != fresh->steps[i].dep_count) {
			exec_end(fresh);
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		}
	}
	for (size_t i = 0; i < exec->count; i++)
		exec->steps[i].work = fresh->steps[i].work;
	exec_end(fresh);
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult exec_map(struct exec *exec, struct stream *stream)
{
	uint64_t ready = timeline_ready_ns(stream, timeline_now(stream->context->device));
	CUresult result = CUDA_SUCCESS;

	for (struct graph_mapping *mapping = exec->mappings; mapping && result == CUDA_SUCCESS;
		mapping = mapping->next)
		result = graph_map(mapping, ready);
	return result;
}
