/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes: their values and their bodies. */
#include "sim/cuda/model/graph/conditional.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/graph.h"

#define HANDLE_MAGIC   0x434f4e44u
#define ASSIGN_DEFAULT 1u
#define ROUNDS_MAX     1000u
#define BODIES_MAX     64u

struct handle {
	struct relic relic; /* never freed: nodes and programs name it */
	uint32_t magic;
	unsigned int value; /* at the beginning of a launch */
};

struct conditional {
	CUgraphConditionalNodeType type;
	const struct handle *handle;
	size_t body_count;
	CUgraph *shown; /* phGraph_out: the program may write there */
	CUgraph bodies[];
};

CUresult conditional_new_handle(const struct graph *graph, unsigned int default_value,
	unsigned int flags, CUgraphConditionalHandle *ret_handle)
{
	struct handle *handle;

	if (!graph || flags & ~ASSIGN_DEFAULT || (default_value && !flags))
		return CUDA_ERROR_INVALID_VALUE;
	handle = malloc(sizeof(*handle));
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = (struct handle){.magic = HANDLE_MAGIC, .value = default_value};
	driver_keep_relic(&handle->relic);
	*ret_handle = (uintptr_t)handle;
	return CUDA_SUCCESS;
}

/* How many bodies a node of a type may have (documented). */
static bool is_size_valid(CUgraphConditionalNodeType type, unsigned int size)
{
	switch (type) {
	case CU_GRAPH_COND_TYPE_IF:
		return size == 1 || size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return size >= 1 && size <= BODIES_MAX;
	default:
		return false;
	}
}

static CUresult add_bodies(struct conditional *conditional, size_t count)
{
	while (conditional->body_count < count) {
		struct graph *body = graph_new();

		if (!body)
			return CUDA_ERROR_OUT_OF_MEMORY;
		body->is_child = true;
		conditional->bodies[conditional->body_count++] = (CUgraph)body;
	}
	return CUDA_SUCCESS;
}

CUresult conditional_new(CUDA_CONDITIONAL_NODE_PARAMS *params, struct conditional **ret_conditional)
{
	const struct handle *handle = (const struct handle *)(uintptr_t)params->handle;
	struct conditional *conditional;
	CUresult result;

	if (!handle || handle->magic != HANDLE_MAGIC || !is_size_valid(params->type, params->size))
		return CUDA_ERROR_INVALID_VALUE;
	conditional = calloc(1, sizeof(*conditional) + 2 * params->size * sizeof(CUgraph));
	if (!conditional)
		return CUDA_ERROR_OUT_OF_MEMORY;
	conditional->type = params->type;
	conditional->handle = handle;
	conditional->shown = conditional->bodies + params->size;
	result = add_bodies(conditional, params->size);
	if (result != CUDA_SUCCESS) {
		conditional_drop(conditional);
		return result;
	}
	*ret_conditional = conditional;
	memcpy(conditional->shown, conditional->bodies, params->size * sizeof(CUgraph));
	params->phGraph_out = conditional->shown;
	return CUDA_SUCCESS;
}

void conditional_drop(struct conditional *conditional)
{
	for (size_t i = 0; i < conditional->body_count; i++)
		graph_free(conditional_body(conditional, i));
	free(conditional);
}

size_t conditional_body_count(const struct conditional *conditional)
{
	return conditional->body_count;
}

struct graph *conditional_body(const struct conditional *conditional, size_t index)
{
	return (struct graph *)conditional->bodies[index];
}

unsigned int conditional_rounds(const struct conditional *conditional, size_t index)
{
	unsigned int value = conditional->handle->value;

	switch (conditional->type) {
	case CU_GRAPH_COND_TYPE_WHILE:
		return value < ROUNDS_MAX ? value : ROUNDS_MAX;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return value == index;
	default:
		return index == 0 ? value != 0 : value == 0;
	}
}
