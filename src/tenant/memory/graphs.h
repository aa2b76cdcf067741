/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that allocate memory when they are launched.
 *
 * The driver takes memory for them when they are uploaded or launched, out of one pool for each
 * device, and only a trim gives it back (H200, driver 580). So a launch reserves what the graph
 * needs at most, and afterwards what the pool is seen to hold is charged (pools.h). A launch that
 * takes no more than is there already reserves nothing: see graphs.c for how that is known. An upload of a
 * graph that has memory may take as much once more, and reserves it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/bits.h"
#include "tenant/memory/graph_survey.h"

/* A call that may take memory for a graph: an upload, a launch. */
struct graph_call {
	cuGraphLaunch_fn *run;
	CUgraphExec exec;
	CUstream stream;
	bool is_upload;
};

/* How many executable graphs of the process allocate memory. */
extern _Atomic uint32_t graphs_with_needs;

static inline bool graphs_any(void)
{
	/* relaxed: a thread that launches a graph knows it to be instantiated */
	return UNLIKELY(atomic_load_explicit(&graphs_with_needs, memory_order_relaxed) != 0);
}

/* Remembers what an executable graph needs, and leaves the survey without it. */
CUresult graphs_keep(CUgraphExec exec, struct graph_survey *survey) MUST_CHECK;

/* Takes the needs of an executable graph that is being destroyed; puts them back if the driver refuses. */
struct need *graphs_take(CUgraphExec exec);
void graphs_put_back(CUgraphExec exec, struct need *needs);

/* Calls the driver with the memory that the needs (of call->exec) make necessary charged. */
CUresult graphs_call(const struct graph_call *call);

/* The program's own trim of the device. */
CUresult graphs_trim(CUdevice ordinal);

/* For a child of fork(). */
void graphs_reset_after_fork(void);
