/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel is launched for the first time, or comes into an executable graph, while another thread ends its context and makes it anew, and loads others
 * until one with frames of 60,000 bytes has its handle.
 *
 * What was reserved was for the one that went with the context: 15,726 MiB were held in a slice of 2 GiB. Now a context does not end while a
 * call uses code of it.
 */
#include "tests/hostile/exchanged.h"

enum way { RESET, RELEASED, RESET_IN_GRAPH, WAYS };

static enum way way_now;
static CUgraph graph;

static void make_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(exchanged.function, NULL);
	CUgraphNode node;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
}

static void *launch(void *unused)
{
	CUgraphExec exec;

	MUST(cuCtxSetCurrent(exchanged.context));
	if (way_now == RESET_IN_GRAPH)
		cuGraphInstantiateWithFlags(&exec, graph, 0);
	else
		hostile_launch(exchanged.function, NULL);
	return unused;
}

static bool end_context(void)
{
	CUcontext again;

	if (way_now == RELEASED ? cuDevicePrimaryCtxRelease_v2(0) : cuDevicePrimaryCtxReset_v2(0))
		return false;
	return cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS &&
	       cuCtxSetCurrent(again) == CUDA_SUCCESS;
}

static void exchange(void)
{
	const CUfunction before = exchanged.function;

	if (end_context())
		exchanged_load_until(before);
}

static void attack_so(int unused)
{
	exchanged_begin(false);
	if (way_now == RESET_IN_GRAPH)
		make_graph();
	exchanged_beside(launch, exchange);
}

/* Each in a process of its own, one after the other. */
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
			      .is_simulated_only = true,
			      .is_brief = true,
			      .slow_calls = {"cuLaunchKernel", "cuGraphInstantiateWithFlags"},
			      .attack = attack});
}
