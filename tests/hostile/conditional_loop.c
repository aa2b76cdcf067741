/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph with a loop around one kernel of 2 ms. The graph shows one kernel, and the loop turns 30 times: how long a
 * launch lasts shows only when it is done. On a card a loop would need code of the toolkit to end it: there a condition
 * that holds stands before as many kernels.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define ROUNDS	  30
#define LAUNCHES  2
#define KERNEL_NS (2 * MS)

static CUgraphExec make_loop(CUfunction kernel)
{
	bool is_loop = !counted_is_on_card();
	CUDA_KERNEL_NODE_PARAMS_v2 body = counted_node(kernel, KERNEL_NS);
	CUgraphNodeParams loop = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = is_loop ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF,
			.size = 1}};
	CUgraphNode node, before;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuCtxGetCurrent(&loop.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(&loop.conditional.handle, graph, loop.conditional.ctx,
		ROUNDS, 1 /* assigned at each launch */));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &loop));
	for (int i = 0; i < (is_loop ? 1 : ROUNDS); i++) {
		before = node;
		MUST(cuGraphAddKernelNode_v2(
			&node, loop.conditional.phGraph_out[0], &before, i > 0, &body));
	}
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	counted_note(LAUNCHES * ROUNDS * KERNEL_NS);
	return exec;
}

static void attack(void)
{
	CUgraphExec exec;
	CUstream stream;

	served_begin();
	exec = make_loop(served_kernel());
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		for (int i = 0; i < LAUNCHES; i++)
			MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
