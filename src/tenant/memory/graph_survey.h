/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph will take, read off its nodes before it is instantiated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/memory/graph_memory.h"
#include "tenant/slice/state.h"

/* A context that kernels of the graph run in. */
struct graph_place {
	CUcontext context;
	uint64_t frame_bytes; /* the largest of its kernels there */
	bool has_new;	      /* one of them was not launched there before */
	bool has_device;      /* which is among the survey's */
};
#define GRAPH_PLACES 16

/* Nothing tells to which devices: to any on which the process has a context. */
#define GRAPH_ANYWHERE UINT64_MAX

struct graph_survey {
	uint64_t node_count; /* with those of child graphs and bodies */
	struct graph_place places[GRAPH_PLACES];
	unsigned place_count;
	uint64_t devices; /* that it gives work to: one bit an ordinal, or GRAPH_ANYWHERE */
	uint64_t content; /* which nodes, and kernels in them: a sum of hashes */
	struct graph_memory *memory; /* NULL: it allocates and frees none */
};

#define GRAPH_SURVEY_NULL      \
	{                      \
		.memory = NULL \
	}

/*
 * Adds what is in the graph. CUDA_ERROR_OUT_OF_MEMORY where our own memory is short or a device of
 * its allocations cannot be entered; the driver's own error where it does not tell what is in it.
 */
CUresult graph_survey_graph(CUgraph graph, struct graph_survey *survey) MUST_CHECK;

/*
 * The same once more, when the graph was instantiated: CUDA_ERROR_OUT_OF_MEMORY where it is not as it was found before. Adds devices.
 */
CUresult graph_survey_again(CUgraph graph, struct graph_survey *before) MUST_CHECK;

/* The place of a context, begun where there is none; NULL where there are too many. */
struct graph_place *graph_survey_place(struct graph_survey *survey, CUcontext context);

/* The function of a kernel node, or its kernel, which the driver takes in its place. */
static inline CUfunction graph_survey_function(const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return params->func ? params->func : (CUfunction)params->kern;
}

/*
 * Adds a kernel node's function or kernel, which is loaded into its context, if it is not there, or refused.
 * A context of NULL means the current one. The driver takes a function's own, which these parameters of the program's do not tell: its devices
 * are GRAPH_ANYWHERE then.
 */
CUresult graph_survey_kernel(
	const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct graph_survey *survey) MUST_CHECK;

/* A conditional node was made: its bodies, which nothing tells later. */
void graph_survey_keep_bodies(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS *params);

/* Frees what a survey found, and was not taken out. */
void graph_survey_end(struct graph_survey *survey);

/* For a child of fork(). */
void graph_survey_reset_after_fork(void);

#define _cleanup_graph_survey_ __attribute__((cleanup(graph_survey_end)))
