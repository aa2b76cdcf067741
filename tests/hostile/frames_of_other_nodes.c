/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executable graph has a kernel with deep frames, for which the context gets 1.8 GiB, and one without. The stack's limit is lowered again,
 * so the driver gives these back, and other memory is taken in their place. Then the kernel without frames is exchanged for another one without.
 *
 * The driver makes all of the executable graph ready again, and that one kernel alone was looked at: 5,438 MiB were held in a slice of 4 GiB. Now
 * each executable graph's deepest frame is known, and has its room before a change.
 */
#include "tests/hostile/hostile.h"

static CUfunction load(unsigned frame_bytes)
{
	char text[HOSTILE_CODE_BYTES];
	CUfunction function;
	CUmodule module;

	MUST(cuModuleLoadData(
		&module, hostile_ptx(&(struct hostile_code){.frame_bytes = frame_bytes}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
	return function;
}

static void attack(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUgraphNode deep, plain;
	CUgraphExec exec;
	CUdeviceptr block;
	CUgraph graph;
	int blocks = 0;

	hostile_begin();
	MUST(cuGraphCreate(&graph, 0));
	params = hostile_node(load(8192), NULL);
	MUST(cuGraphAddKernelNode_v2(&deep, graph, NULL, 0, &params));
	params = hostile_node(load(0), NULL);
	MUST(cuGraphAddKernelNode_v2(&plain, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
	params = hostile_node(load(0), NULL);
	while (blocks < 24 && cuMemAlloc_v2(&block, 128 * MIB) == CUDA_SUCCESS)
		blocks++;
	cuGraphExecKernelNodeSetParams_v2(exec, plain, &params);
	cuGraphLaunch(exec, NULL);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB, .attack = attack});
}
