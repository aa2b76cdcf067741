/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph will take, read off its nodes before it is instantiated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/slice/state.h"

/* A device's memory for what the graph allocates there. */
struct need {
	struct need *next; /* on another device, of a larger ordinal */
	struct device *device;
	uint64_t bytes;
	/* what graphs.c knows of the last launch */
	uint64_t epoch, stream_id;
	bool is_balanced; /* the graph frees all that it allocates */
};

struct graph_survey {
	uint64_t node_count;  /* with those of child graphs and bodies */
	uint64_t frame_bytes; /* the largest of its kernels */
	uint64_t balance;     /* 0: all that is allocated is freed, and nothing else */
	struct need *needs;
};

#define GRAPH_SURVEY_NULL     \
	{                     \
		.needs = NULL \
	}

/*
 * Adds what is in the graph. CUDA_ERROR_OUT_OF_MEMORY where our own memory is short or a device of
 * its allocations cannot be entered; the driver's own error where it does not tell what is in it.
 */
CUresult graph_survey_graph(CUgraph graph, struct graph_survey *survey) MUST_CHECK;

/* The frame of a kernel node's function or kernel. */
uint64_t graph_survey_frame_bytes(CUfunction function, CUkernel kernel);

/* A conditional node was made: its bodies, which nothing tells later. */
void graph_survey_keep_bodies(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS *params);

/* Frees what a survey found; accepts NULL and what was taken out. */
void graph_survey_free_needs(struct need *needs);
void graph_survey_end(struct graph_survey *survey);

/* For a child of fork(). */
void graph_survey_reset_after_fork(void);

#define _cleanup_graph_survey_ __attribute__((cleanup(graph_survey_end)))
