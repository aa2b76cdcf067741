/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph is uploaded once more: while what it allocated is still there, and while it runs in another stream.
 *
 * The library took its memory for in place and reserved nothing, so 3.1 GiB were held in a slice of 2 GiB. Now an upload
 * reserves what the graph needs, unless all of the device's graphs follow each other in its stream.
 */
#include "tests/hostile/hostile.h"

#define BLOCK_BYTES (1300 * MIB)

static CUgraphNode add_allocation(CUgraph graph, CUdeviceptr *ret_block)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = BLOCK_BYTES};
	CUgraphNode node;

	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	*ret_block = params.dptr;
	return node;
}

static void try_allocated(CUstream stream, CUstream other)
{
	CUdeviceptr block;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	add_allocation(graph, &block);
	MUST(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	MUST(cuGraphLaunch(exec, stream));
	cuGraphUpload(exec, stream);
	hostile_look();
	cuGraphUpload(exec, other);
	hostile_look();
	MUST(cuMemFree_v2(block));
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(exec));
	MUST(cuDeviceGraphMemTrim(0));
}

static void try_running(CUstream stream, CUstream other)
{
	CUgraphNode allocated, freed;
	CUdeviceptr block;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	allocated = add_allocation(graph, &block);
	MUST(cuGraphAddMemFreeNode(&freed, graph, &allocated, 1, block));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	hostile_keep_busy(stream);
	MUST(cuGraphLaunch(exec, stream));
	cuGraphUpload(exec, other);
	hostile_look();
	MUST(cuCtxSynchronize());
}

static void attack(void)
{
	CUstream stream, other;

	hostile_begin();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	try_allocated(stream, other);
	try_running(stream, other);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
