/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two graphs that allocate 2 GiB and free them again are launched in one stream, behind work, so that the second has the first one's memory.
 * Another thread destroys the stream and makes one of the same handle before the driver is there, and the second runs at once.
 *
 * It reserved nothing, and 4.5 GiB were held in a slice of 3 GiB. Now no stream is made from the look at it to the driver's answer.
 */
#include "tests/hostile/hostile.h"

#define STREAMS_MOST 64

static CUcontext context;
static CUstream stream;
static CUgraphExec execs[2];

static CUgraphExec make(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 2 * GIB};
	CUgraphNode alloc, freed;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	MUST(cuGraphAddMemFreeNode(&freed, graph, &alloc, 1, params.dptr));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	cuGraphLaunch(execs[1], stream);
	return unused;
}

static void attack(void)
{
	CUstream next = NULL;
	pthread_t thread;

	context = hostile_begin();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 2; i++)
		execs[i] = make();
	hostile_keep_busy(stream);
	MUST(cuGraphLaunch(execs[0], stream));
	thread = hostile_begin_slowly(launch);
	MUST(cuStreamDestroy_v2(stream));
	for (int i = 0; i < STREAMS_MOST && next != stream; i++)
		MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .slow_calls = {"cuGraphLaunch"},
					  .is_slow_only = true,
					  .attack = attack});
}
