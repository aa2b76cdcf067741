/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As graph_freed_in_other_stream, but another thread is just launching the graph when the memory is freed: when it was looked for the graph's
 * memory it was not freed yet, and when the driver looks it is. A free waits now until no launch of the graph is under way.
 */
#include "tests/hostile/hostile.h"

static CUDA_MEM_ALLOC_NODE_PARAMS params = {
	.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
	.bytesize = 512 * MIB};
static CUcontext context;
static CUstream launches, frees;
static CUgraphExec exec;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	cuGraphLaunch(exec, launches);
	return unused;
}

static void attack(void)
{
	CUgraphNode node;
	CUgraph graph;

	context = hostile_begin();
	MUST(cuStreamCreate(&launches, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&frees, CU_STREAM_NON_BLOCKING));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphLaunch(exec, launches));
	for (int i = 0; i < 8; i++)
		hostile_keep_busy(frees); /* 4 s */
	for (int i = 0; i < 16; i++) {
		pthread_t thread = hostile_begin_slowly(launch);

		cuMemFreeAsync(params.dptr, frees);
		MUST(pthread_join(thread, NULL));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuGraphLaunch"},
					  .is_brief = true,
					  .attack = attack});
}
