/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's heap is as small as can be, 2 MiB, when a graph is instantiated that has a kernel without any need of it, and 20,000 empty nodes.
 * Then the heap's limit is made 8 GiB, and a kernel is launched that brings it.
 *
 * The driver takes 50 MiB for the nodes, which was taken for the heap's coming, as it is more than the heap would be: nothing was reserved
 * any more, and 8,900 MiB were held in a slice of 2 GiB. Now the driver alone tells whether a heap is there.
 */
#include "tests/hostile/hostile.h"

#define NODES 20000

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
	CUfunction heap, plain;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 0));
	heap = load(true);
	plain = load(false);
	params = hostile_node(plain, NULL);
	MUST(cuGraphCreate(&graph, 0));
	for (int i = 0; i < NODES; i++)
		MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	hostile_launch(heap, NULL);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
