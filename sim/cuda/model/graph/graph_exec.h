/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs, for graph_exec.c (which makes and changes them) and graph_launch.c. */
#pragma once

#include "sim/cuda/model/graph/graph.h"

struct step {
	struct graph_node *node; /* whose work it is; only compared */
	struct work work;
	size_t *deps; /* steps before this one */
	size_t dep_count;
	uint64_t end_ns; /* in a launch */
};

struct exec {
	uint32_t magic; /* 0 once destroyed */
	unsigned long long flags;
	struct step *steps;
	size_t count;
	struct mapping *mappings;
	uint64_t until_ns; /* the end of its last launch */
	struct exec *next; /* of the spare ones */
};

/* All under driver.memory_lock. */
struct exec *exec_check(CUgraphExec handle);
/* What a step allocates, or NULL. */
struct graph_block *exec_block(const struct step *step);
struct mapping *exec_mapping(struct exec *exec, struct device *device);
/* Makes all memory of the graph ready for work that the stream begins now. */
CUresult exec_map(struct exec *exec, struct stream *stream);
