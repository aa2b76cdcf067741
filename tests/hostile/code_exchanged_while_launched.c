/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel is launched for the first time, or comes into an executable graph, while another thread unloads its code, and loads others until a
 * kernel of one has its handle: with frames of 60,000 bytes, or in a library with 8 GiB of variables.
 *
 * What was reserved was for the one that went: 15,726 MiB were held in a slice of 2 GiB. Now code that such a call uses is not unloaded
 * meanwhile.
 */
#include "tests/hostile/exchanged.h"

enum way { FRAMES, LIBRARY, EXECUTABLE, WAYS };

static enum way way_now;
static CUgraphExec exec;
static CUgraphNode node;

static void make_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(exchanged.function, NULL);
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	/* Another one, which was not launched. */
	exchanged_load(exchanged.small);
}

static void *launch(void *unused)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(exchanged.function, NULL);

	MUST(cuCtxSetCurrent(exchanged.context));
	if (way_now == EXECUTABLE)
		cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	else
		hostile_launch(exchanged.function, NULL);
	return unused;
}

static void exchange(void)
{
	const CUfunction before = exchanged.function;

	if (exchanged_unload() == CUDA_SUCCESS)
		exchanged_load_until(before);
}

static void attack_so(int unused)
{
	CUfunction loaded;

	exchanged_begin(way_now == LIBRARY);
	if (way_now == LIBRARY)
		MUST(cuKernelGetFunction(&loaded, (CUkernel)exchanged.function));
	if (way_now == EXECUTABLE)
		make_graph();
	exchanged_beside(launch, exchange);
}

/* Each in a process of its own, one after the other: frames stay with the context. */
static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 2 * GIB,
			      .is_slow_only = true,
			      .is_brief = true,
			      .slow_calls = {"cuLaunchKernel", "cuGraphExecKernelNodeSetParams_v2"},
			      .attack = attack});
}
