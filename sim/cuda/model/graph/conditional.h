/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes: graphs in a graph that run if, while or which of them a value says. */
#pragma once

#include <stddef.h>

#include "gpu/abi/cuda.h"

/*
 * The value is set by device code, which does not run here. A launch begins with the handle's default, and
 * each round of a loop counts it down: a loop runs as often as its default says.
 */
struct conditional;
struct graph;

/* All under driver.memory_lock. */

/* A value for nodes of the graph. */
CUresult conditional_new_handle(const struct graph *graph, unsigned int default_value,
	unsigned int flags, CUgraphConditionalHandle *ret_handle);

/* What such a node has: empty bodies, which params->phGraph_out shows. */
CUresult conditional_new(
	CUDA_CONDITIONAL_NODE_PARAMS *params, struct conditional **ret_conditional);
void conditional_drop(struct conditional *conditional);

size_t conditional_body_count(const struct conditional *conditional);
struct graph *conditional_body(const struct conditional *conditional, size_t index);

/* How often a launch runs a body. */
unsigned int conditional_rounds(const struct conditional *conditional, size_t index);
