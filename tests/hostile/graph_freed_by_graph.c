/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As graph_freed_in_other_stream, but another graph frees the memory: one with a node that frees and no other, launched in another stream
 * behind work. Nothing was seen in a launch of a graph that needs nothing: 8.5 GiB were held in a slice of 2 GiB.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 512 * MIB};
	CUstream launches, frees;
	CUgraphExec exec = NULL, freeing = NULL;
	CUgraph graph, other;
	CUgraphNode node;
	CUresult r = CUDA_SUCCESS;

	hostile_begin();
	MUST(cuStreamCreate(&launches, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&frees, CU_STREAM_NON_BLOCKING));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphCreate(&other, 0));
	MUST(cuGraphAddMemFreeNode(&node, other, NULL, 0, params.dptr));
	MUST(cuGraphInstantiateWithFlags(&freeing, other, 0));
	for (int i = 0; i < 6; i++)
		hostile_keep_busy(frees); /* 3 s */
	for (int i = 0; i < 16 && r == CUDA_SUCCESS; i++) {
		r = cuGraphLaunch(exec, launches);
		if (r == CUDA_SUCCESS && i < 15)
			r = cuGraphLaunch(freeing, frees);
	}
	usleep(1200000);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
