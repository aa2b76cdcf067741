/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that are launched on a stream of device 1, which has no cap, and whose kernels are device 0's, which has one. Each thread has a way of its
 * own: the graph was built, captured, updated, or changed, is a part of another, or its kernel is said to be of a context of device 1. A launch was
 * metered on its stream's device alone.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (5 * MS)

static CUcontext contexts[2];
static CUfunction kernels[2]; /* of each device */

static CUgraph new_graph(void)
{
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphNode add_kernel(CUgraph graph, CUfunction kernel, CUcontext context)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = counted_node(kernel, KERNEL_NS);
	CUgraphNode made;

	node.ctx = context;
	MUST(cuGraphAddKernelNode_v2(&made, graph, NULL, 0, &node));
	return made;
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;

	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static CUgraphExec make_built(CUstream unused)
{
	return served_graph(kernels[0], KERNEL_NS);
}

static CUgraphExec make_misnamed(CUstream unused)
{
	CUgraph graph = new_graph();

	add_kernel(graph, kernels[0], contexts[1]);
	return instantiate(graph);
}

static CUgraphExec make_parent(CUstream unused)
{
	CUgraph graph = new_graph(), parent = new_graph();
	CUgraphNode node;

	add_kernel(graph, kernels[0], NULL);
	MUST(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
	return instantiate(parent);
}

/* The stream's capture goes on in one of device 0, and comes back. */
static CUgraphExec make_captured(CUstream stream)
{
	CUevent begun, ended;
	CUstream other;
	CUgraph graph;

	MUST(cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING));
	MUST(cuCtxSetCurrent(contexts[0]));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&ended, CU_EVENT_DISABLE_TIMING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuEventRecord(begun, stream));
	MUST(cuStreamWaitEvent(other, begun, 0));
	served_launch(kernels[0], other, KERNEL_NS);
	MUST(cuEventRecord(ended, other));
	MUST(cuStreamWaitEvent(stream, ended, 0));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuCtxSetCurrent(contexts[1]));
	return instantiate(graph);
}

/* A driver that refuses it leaves the graph as it was. */
static CUgraphExec make_updated(CUstream unused)
{
	CUgraph graph = new_graph(), next = new_graph();
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;

	add_kernel(graph, kernels[1], NULL);
	exec = instantiate(graph);
	add_kernel(next, kernels[0], NULL);
	(void)cuGraphExecUpdate_v2(exec, next, &info);
	return exec;
}

static CUgraphExec make_changed(CUstream unused)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = counted_node(kernels[0], KERNEL_NS);
	CUgraph graph = new_graph();
	CUgraphNode node = add_kernel(graph, kernels[1], NULL);
	CUgraphExec exec = instantiate(graph);

	params.ctx = contexts[1];
	(void)cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	return exec;
}

typedef CUgraphExec make_fn(CUstream stream);
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void *launch_graphs(void *make)
{
	CUgraphExec exec = NULL;
	CUstream stream;

	MUST(cuCtxSetCurrent(contexts[1]));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(pthread_mutex_lock(&making));
	exec = (*(make_fn **)make)(stream);
	MUST(pthread_mutex_unlock(&making));
	for (;;) {
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
	return exec;
}

static void attack(void)
{
	static make_fn *const all[] = {
		make_built, make_misnamed, make_parent, make_captured, make_updated, make_changed};
	const char *only = getenv("HOSTILE_WAY");
	pthread_t thread;

	MUST(cuInit(0));
	for (int i = 0; i < 2; i++) {
		MUST(cuCtxCreate_v2(&contexts[i], 0, i));
		kernels[i] = served_kernel();
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!only || (size_t)atoi(only) == i)
			MUST(pthread_create(&thread, NULL, launch_graphs, (void *)&all[i]));
	MUST(pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 2000,
					 .least_permille = 290,
					 .fills_device = true,
					 .is_other_free = true,
					 .attack = attack});
}
