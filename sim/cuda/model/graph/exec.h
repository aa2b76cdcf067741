/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs, for exec.c, which makes and changes them, and exec_launch.c. */
#pragma once

#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/graph_memory.h"

#define EXEC_MAGIC 0x45584543u

struct step {
	struct graph_node *node; /* whose work it is; only compared */
	struct work work;
	size_t *deps; /* steps before this one */
	size_t dep_count;
	bool is_left_out;	   /* of a conditional body that does not run */
	uint64_t begin_ns, end_ns; /* in a launch */
	bool is_busy;		   /* in a launch: its device is needed */
};

struct exec {
	uint32_t magic; /* 0 once destroyed */
	unsigned long long flags;
	struct step *steps;
	size_t count;
	struct graph_mapping *mappings;
	uint64_t until_ns; /* the end of its last launch */
	struct exec *next; /* of the spare ones */
};

/* All under driver.memory_lock, but for exec_make_ready() and exec_launch(). */
struct exec *exec_check(CUgraphExec handle);
CUresult exec_make(struct context *context, struct graph *graph, unsigned long long flags,
	struct exec **ret_exec);
/* Takes all that launches of its kernels need, in their contexts or the current one. Takes memory_lock. */
CUresult exec_make_ready(const struct exec *exec, struct context *current);
void exec_end(struct exec *exec);
/* Takes over the works of a graph of the same shape. */
CUgraphExecUpdateResult exec_update(struct exec *exec, struct graph *graph);

/* The block that a step allocates, or NULL. */
struct graph_block *exec_block(const struct step *step);
/* Whether one of the steps from first to before end does. */
bool exec_has_block(
	const struct exec *exec, const struct graph_block *block, size_t first, size_t end);
struct graph_mapping *exec_mapping(struct exec *exec, struct device *device);
/* Makes all memory of the graph ready for work that the stream begins now. */
CUresult exec_map(struct exec *exec, struct stream *stream);

/* Launches of one executable graph follow each other, on whatever stream. Takes memory_lock. */
CUresult exec_launch(CUgraphExec handle, struct stream *stream);
