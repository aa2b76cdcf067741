/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel is launched for the first time, or comes into an executable graph, while another thread ends its context and makes it anew, and loads others
 * until one with frames of 60,000 bytes has its handle.
 *
 * What was reserved was for the one that went with the context: 15,726 MiB were held in a slice of 2 GiB. Now a context does not end while a
 * call uses code of it.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 30

enum way { RESET, RELEASED, RESET_IN_GRAPH, WAYS };

static CUcontext context;
static CUmodule module;
static CUfunction function;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];
static enum way way_now;
static CUgraph graph;

static void load(const char *text)
{
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&function, module, "k"));
}

static void make_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);
	CUgraphNode node;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
}

static void *launch(void *unused)
{
	CUgraphExec exec;

	MUST(cuCtxSetCurrent(context));
	if (way_now == RESET_IN_GRAPH)
		cuGraphInstantiateWithFlags(&exec, graph, 0);
	else
		hostile_launch(function, NULL);
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
	const CUfunction before = function;

	if (!end_context())
		return;
	for (int i = 0; i < ROUNDS; i++) {
		load(large_text);
		if (function == before || cuModuleUnload(module) != CUDA_SUCCESS)
			return;
	}
}

static void attack_so(int unused)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code frames = {.frame_bytes = 60000};
	pthread_t thread;

	context = hostile_begin();
	hostile_ptx(&small, small_text);
	hostile_ptx(&frames, large_text);
	/* What has ended is some, as in a program that has run for a while. */
	for (int i = 0; i < ROUNDS; i++) {
		load(small_text);
		MUST(cuModuleUnload(module));
	}
	load(small_text);
	if (way_now == RESET_IN_GRAPH)
		make_graph();
	thread = hostile_begin_slowly(launch);
	exchange();
	MUST(pthread_join(thread, NULL));
	usleep(100000);
	hostile_look();
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
