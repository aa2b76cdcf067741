/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: their nodes and edges. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/graph/work.h"

#define GRAPH_MAGIC 0x47525048u
#define NODE_MAGIC  0x4e4f4445u

/* Everything here is under driver.memory_lock. */

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

/* NULL without memory. */
struct graph *graph_new(void);
void graph_free(struct graph *graph);
struct graph *graph_check(CUgraph handle);
struct graph_node *graph_check_node(CUgraphNode handle);
/* The clone's nodes are in the order of the original's. */
struct graph *graph_clone(const struct graph *graph);
bool graph_has_memory(const struct graph *graph);
/* Graphs with nodes that allocate, free or are conditional cannot (documented). */
bool graph_can_be_cloned(const struct graph *graph);
/*
 * What is allocated after nodes that free all that lay at an address of the graph lies there again, if it fits (documented). Before
 * graph_add() of a work that allocates.
 */
void graph_place(const struct graph *graph, struct graph_node *const *deps, size_t dep_count,
	struct work *work);
CUresult graph_add(struct graph *graph, struct graph_node *const *deps, size_t dep_count,
	const struct work *work, struct graph_node **ret_node);
bool graph_depend(struct graph_node *node, struct graph_node *on);
void graph_remove(struct graph_node *node);
