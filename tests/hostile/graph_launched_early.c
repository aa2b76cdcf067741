/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph that allocates 8 GiB is instantiated, and another thread launches it before the call returns: by the handle that
 * an executable graph before it had, which the driver gives out again.
 *
 * What a graph needs is entered when the driver has made it and the graph was looked through again. Until then it was taken
 * for one without memory: 8.5 GiB were held in a slice of 2 GiB. Now a handle that is not known is not launched meanwhile.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

#define NODES 20000

static CUcontext context;
static CUgraphExec guessed;
static _Atomic bool is_over;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	while (!atomic_load(&is_over) && cuGraphLaunch(guessed, NULL) != CUDA_SUCCESS)
		;
	return unused;
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec made = NULL;

	if (cuGraphInstantiateWithFlags(&made, graph, 0) != CUDA_SUCCESS)
		return NULL;
	return made;
}

static CUgraph make_graph(int nodes)
{
	CUgraphNode node;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	for (int i = 0; i < nodes; i++)
		MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	return graph;
}

static void attack(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 8 * GIB};
	CUgraph large;
	pthread_t thread;
	CUgraphNode node;

	context = hostile_begin();
	large = make_graph(NODES);
	MUST(cuGraphAddMemAllocNode(&node, large, NULL, 0, &params));
	guessed = instantiate(make_graph(1));
	MUST(!guessed);
	MUST(cuGraphExecDestroy(guessed));
	MUST(pthread_create(&thread, NULL, launch, NULL));
	instantiate(large);
	usleep(20000);
	atomic_store(&is_over, true);
	MUST(pthread_join(thread, NULL));
	cuCtxSynchronize();
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
