/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that allocate memory when they are launched.
 *
 * The driver takes memory for them when they are uploaded or launched, out of one pool for each
 * device, and only a trim gives it back (H200, driver 580). So a launch reserves what the graph
 * needs at most, and afterwards what the pool is seen to hold is charged (pools.h). A launch that
 * takes no more than is there already reserves nothing: see graph_growth.c for how that is known. An upload of a
 * graph that has memory may take as much once more, and reserves it.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "tenant/memory/graph_survey.h"

/* A call that may take memory for a graph: an upload, a launch. */
struct graph_call {
	cuGraphLaunch_fn *run;
	CUgraphExec exec;
	CUstream stream;
	bool is_upload;
	uint64_t passed; /* it may give work to these devices (graph_survey.h) */
	bool is_of_one;	 /* and to any, while the process has had contexts of one alone */
};

/* Remembers what an executable graph needs, and leaves the survey without it. */
CUresult graphs_keep(CUgraphExec exec, struct graph_survey *survey) MUST_CHECK;

/* Has the driver destroy it, and forgets it. CUDA_ERROR_NOT_READY: another thread is launching it, for MAKINGS_WAIT_NS. */
CUresult graphs_destroy(CUgraphExec exec);

/*
 * Before something else is put into it: from now on it gives work to these devices (graph_survey.h) as well as to those of before. CUDA_ERROR_NOT_READY: another thread is launching it, for MAKINGS_WAIT_NS.
 */
CUresult graphs_widen(CUgraphExec exec, uint64_t devices) MUST_CHECK;

/* The devices that it may give work to: one bit an ordinal. */
uint64_t graphs_devices(CUgraphExec exec);

/*
 * Calls the driver with the memory that the needs (of call->exec) make necessary charged. Where it may give work to further
 * devices the driver is not asked, and *ret_missing says to which; else that is 0.
 */
CUresult graphs_call(const struct graph_call *call, uint64_t *ret_missing);

/*
 * Frees in the order of the stream what may be a graph's, uncaptured: that graph's next launch has its memory in place only where it
 * comes behind the free. CUDA_ERROR_NOT_READY: another thread is launching the graph, for MAKINGS_WAIT_NS.
 */
CUresult graphs_free(CUdeviceptr pointer, CUstream stream, cuMemFreeAsync_fn *call);

/* The program's own trim of the device. */
CUresult graphs_trim(CUdevice ordinal);

/* For a child of fork(). */
void graphs_reset_after_fork(void);
