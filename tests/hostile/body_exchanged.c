/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel in the body of a conditional node allocates from the device's heap, whose limit is 8 GiB. The program writes
 * another, empty graph into the array in which the driver has shown the body.
 *
 * The library read that array when the graph was instantiated, and found nothing that needs a heap: 8.6 GiB were held in a
 * slice of 2 GiB. Now it remembers the bodies themselves.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = CU_GRAPH_COND_TYPE_IF, .size = 2}};
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUgraph graph, empty, body;
	CUfunction function;
	CUgraphExec exec;
	CUgraphNode node;
	CUmodule module;

	hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&function, module, "k"));
	params = hostile_node(function, NULL);
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphCreate(&empty, 0));
	MUST(cuCtxGetCurrent(&any.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(
		&any.conditional.handle, graph, any.conditional.ctx, 0, 1));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &any));
	/* The second body, which stands for "else". */
	body = any.conditional.phGraph_out[1];
	MUST(cuGraphAddKernelNode_v2(&node, body, NULL, 0, &params));
	any.conditional.phGraph_out[1] = empty;
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS)
		cuGraphLaunch(exec, NULL);
	hostile_look();
	cuCtxSynchronize();
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
