/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: their nodes and edges. */
#include "sim/cuda/model/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/graph/graph_memory.h"
#include "sim/cuda/model/graph/work.h"

/*
 * Graphs and nodes are never given back to the C library but kept for the next, so that a handle
 * used after its end is refused and not followed into foreign memory.
 */

static struct graph *spare_graphs;
static struct graph_node *spare_nodes;

struct graph *graph_new(void)
{
	struct graph *graph = spare_graphs;

	if (graph)
		spare_graphs = graph->next;
	else
		graph = malloc(sizeof(*graph));
	if (graph)
		*graph = (struct graph){.magic = GRAPH_MAGIC};
	return graph;
}

struct graph *graph_check(CUgraph handle)
{
	struct graph *graph = (struct graph *)handle;

	return graph && graph->magic == GRAPH_MAGIC ? graph : NULL;
}

struct graph_node *graph_check_node(CUgraphNode handle)
{
	struct graph_node *node = (struct graph_node *)handle;

	return node && node->magic == NODE_MAGIC ? node : NULL;
}

bool graph_has_memory(const struct graph *graph)
{
	if (graph->memory_nodes > 0)
		return true;
	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
			graph_has_memory(node->work.child))
			return true;
	}
	return false;
}

bool graph_can_be_cloned(const struct graph *graph)
{
	if (graph->memory_nodes > 0)
		return false;
	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if (node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
			(node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
				!graph_can_be_cloned(node->work.child)))
			return false;
	}
	return true;
}

static bool is_memory(const struct work *work)
{
	return work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	       work->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

bool graph_depend(struct graph_node *node, struct graph_node *on)
{
	struct graph_node **grown =
		realloc(node->deps, (node->dep_count + 1) * sizeof(*node->deps));

	if (!grown)
		return false;
	node->deps = grown;
	node->deps[node->dep_count++] = on;
	return true;
}

static struct graph_node *take_node(void)
{
	struct graph_node *node = spare_nodes;

	if (node)
		spare_nodes = node->next;
	else
		node = malloc(sizeof(*node));
	if (node)
		*node = (struct graph_node){.magic = NODE_MAGIC, .place = SIZE_MAX};
	return node;
}

static void spare_node(struct graph_node *node)
{
	free(node->deps);
	node->magic = 0;
	node->next = spare_nodes;
	spare_nodes = node;
}

static void link_node(struct graph *graph, struct graph_node *node)
{
	node->graph = graph;
	node->prev = graph->last;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->node_count++;
	graph->memory_nodes += is_memory(&node->work);
}

static bool mark_deps(struct graph_node *const *deps, size_t dep_count)
{
	bool is_any_new = false;

	for (size_t i = 0; i < dep_count; i++) {
		if (!graph_check_node((CUgraphNode)deps[i]) || deps[i]->is_marked)
			continue;
		deps[i]->is_marked = true;
		is_any_new = true;
	}
	return is_any_new;
}

/* Marks these and all that comes before them. */
static void mark_before(const struct graph *graph, struct graph_node *const *deps, size_t dep_count)
{
	bool is_any_new;

	for (struct graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	is_any_new = mark_deps(deps, dep_count);
	while (is_any_new) {
		is_any_new = false;
		for (struct graph_node *node = graph->last; node; node = node->prev)
			if (node->is_marked && mark_deps(node->deps, node->dep_count))
				is_any_new = true;
	}
}

/* The block at that address, if marked nodes free all that the graph allocates there. */
static struct graph_block *find_left(const struct graph *graph, CUdeviceptr base)
{
	struct graph_block *block = NULL;
	size_t allocs = 0, frees = 0;

	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->work.freed == base)
			frees += node->is_marked;
		if (node->work.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
			node->work.alloc.block->base != base)
			continue;
		block = node->work.alloc.block;
		allocs++;
	}
	return allocs == frees ? block : NULL;
}

void graph_place(const struct graph *graph, struct graph_node *const *deps, size_t dep_count,
	struct work *work)
{
	struct graph_block *own = work->alloc.block, *left;

	if (dep_count == 0)
		return;
	mark_before(graph, deps, dep_count);
	for (const struct graph_node *node = graph->first; node; node = node->next) {
		if (!node->is_marked || node->work.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		left = find_left(graph, node->work.freed);
		if (!left || left->device != own->device || left->bytes < own->bytes)
			continue;
		graph_block_drop(own);
		left->refs++;
		work->alloc.block = left;
		work->alloc.params.dptr = left->base;
		return;
	}
}

CUresult graph_add(struct graph *graph, struct graph_node *const *deps, size_t dep_count,
	const struct work *work, struct graph_node **ret_node)
{
	struct graph_node *node;

	for (size_t i = 0; i < dep_count; i++) {
		node = graph_check_node((CUgraphNode)deps[i]);
		if (!node || node->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	node = take_node();
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->work = *work;
	if (dep_count > 0) {
		node->deps = malloc(dep_count * sizeof(*deps));
		if (!node->deps) {
			spare_node(node);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(node->deps, deps, dep_count * sizeof(*deps));
		node->dep_count = dep_count;
	}
	link_node(graph, node);
	*ret_node = node;
	return CUDA_SUCCESS;
}

static void forget_edges_to(struct graph *graph, const struct graph_node *gone)
{
	for (struct graph_node *node = graph->first; node; node = node->next) {
		size_t kept = 0;

		for (size_t i = 0; i < node->dep_count; i++) {
			if (node->deps[i] != gone)
				node->deps[kept++] = node->deps[i];
		}
		node->dep_count = kept;
	}
}

static void unlink_node(struct graph_node *node)
{
	struct graph *graph = node->graph;

	if (node->prev)
		node->prev->next = node->next;
	else
		graph->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		graph->last = node->prev;
	graph->node_count--;
	graph->memory_nodes -= is_memory(&node->work);
	work_drop(&node->work);
	spare_node(node);
}

void graph_remove(struct graph_node *node)
{
	forget_edges_to(node->graph, node);
	unlink_node(node);
}

void graph_free(struct graph *graph)
{
	while (graph->first)
		unlink_node(graph->first);
	graph->magic = 0;
	graph->next = spare_graphs;
	spare_graphs = graph;
}

static bool clone_edges(const struct graph *graph, struct graph *clone)
{
	struct graph_node **made = malloc((graph->node_count + 1) * sizeof(*made));
	struct graph_node *node, *copy;
	bool is_good = made;
	size_t place = 0;

	if (!made)
		return false;
	for (node = graph->first, copy = clone->first; node; node = node->next, copy = copy->next) {
		node->place = place;
		made[place++] = copy;
	}
	for (node = graph->first; node && is_good; node = node->next) {
		for (size_t i = 0; i < node->dep_count && is_good; i++)
			is_good = graph_depend(made[node->place], made[node->deps[i]->place]);
	}
	free(made);
	return is_good;
}

struct graph *graph_clone(const struct graph *graph)
{
	struct graph *clone = graph_new();
	struct graph_node *unused;
	bool is_good = clone;

	for (const struct graph_node *node = graph->first; node && is_good; node = node->next) {
		struct work work = node->work;

		if (work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
			work.child = graph_clone(node->work.child);
			is_good = work.child;
			if (is_good)
				work.child->is_child = true;
		}
		is_good = is_good && graph_add(clone, NULL, 0, &work, &unused) == CUDA_SUCCESS;
	}
	if (is_good && clone_edges(graph, clone))
		return clone;
	if (clone)
		graph_free(clone);
	return NULL;
}
