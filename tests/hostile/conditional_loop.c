/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph with a loop around one kernel of 2 ms. The graph shows one kernel, and the loop turns 30 times: how long a
 * launch lasts shows only when it is done.
 */
#include "tests/hostile/served.h"

#define ROUNDS	  30
#define KERNEL_NS (2 * MS)

static CUgraphExec make_loop(CUfunction kernel)
{
	uint64_t duration_ns = KERNEL_NS;
	void *parameters[] = {&duration_ns};
	CUDA_KERNEL_NODE_PARAMS_v2 body = hostile_node(kernel, NULL);
	CUgraphNodeParams loop = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = CU_GRAPH_COND_TYPE_WHILE, .size = 1}};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	body.kernelParams = parameters;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuCtxGetCurrent(&loop.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(
		&loop.conditional.handle, graph, loop.conditional.ctx, ROUNDS, 1));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &loop));
	MUST(cuGraphAddKernelNode_v2(&node, loop.conditional.phGraph_out[0], NULL, 0, &body));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
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
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
