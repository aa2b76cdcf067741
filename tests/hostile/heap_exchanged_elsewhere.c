/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of an executable graph is exchanged for a function of another context, which allocates from the device's heap there, whose limit is
 * 8 GiB.
 *
 * The current context was looked at, which has no such code: 9,368 MiB were held in a slice of 2 GiB. Now it is the function's that is.
 */
#include "tests/hostile/hostile.h"

static CUfunction load(bool has_heap)
{
	char text[HOSTILE_CODE_BYTES];
	CUfunction function;
	CUmodule module;

	MUST(cuModuleLoadData(
		&module, hostile_ptx(&(struct hostile_code){.has_heap = has_heap}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
	return function;
}

static void attack(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUcontext first, second;
	CUfunction plain, heap;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	MUST(cuInit(0));
	MUST(cuCtxCreate_v2(&first, 0, 0));
	plain = load(false);
	MUST(cuCtxCreate_v2(&second, 0, 0));
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	heap = load(true);
	MUST(cuCtxSetCurrent(first));
	params = hostile_node(plain, NULL);
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	params = hostile_node(heap, NULL);
	cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
