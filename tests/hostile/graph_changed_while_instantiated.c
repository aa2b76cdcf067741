/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second thread gives a graph a node that allocates 8 GiB, after the library has looked at what is in the graph and before
 * the driver instantiates it.
 *
 * The executable graph was taken for one without memory: 8.5 GiB were held in a slice of 2 GiB. Now a graph is looked
 * through again when it was instantiated, and one that has grown meanwhile is destroyed.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

static CUgraph graph;

static void *change(void *argument)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 8 * GIB};
	CUgraphNode node;

	usleep(25000);
	MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	return NULL;
}

static void try(bool has_params)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
	CUgraphExec exec;
	pthread_t thread;
	CUgraphNode node;
	CUresult r;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	MUST(pthread_create(&thread, NULL, change, NULL));
	r = has_params ? cuGraphInstantiateWithParams(&exec, graph, &params)
		       : cuGraphInstantiateWithFlags(&exec, graph, 0);
	MUST(pthread_join(thread, NULL));
	if (r == CUDA_SUCCESS)
		cuGraphLaunch(exec, NULL);
	cuCtxSynchronize();
	hostile_look();
}

static void attack(void)
{
	hostile_begin();
	try(false);
	try(true);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuGraphInstantiateWithFlags",
						  "cuGraphInstantiateWithParams"},
					  .is_slow_only = true,
					  .attack = attack});
}
