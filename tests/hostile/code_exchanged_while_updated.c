/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executable graph is updated to a graph with a kernel that takes nothing, while another thread unloads the kernel's code, and loads others until
 * one with frames of 60,000 bytes has its handle.
 *
 * What was reserved was for the one that went: 15,726 MiB were held in a slice of 2 GiB. Now no code is unloaded while something is put into an
 * executable graph.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 30

enum way { UPDATE, OLD_UPDATE, CHILD, NODE, WAYS };

static CUcontext context;
static CUmodule module;
static CUfunction function;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];
static enum way way_now;
static CUgraph other; /* what the executable graph, or its node, is updated to */
static CUgraphExec exec;
static CUgraphNode child_node;

static void load(const char *text)
{
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&function, module, "k"));
}

static CUgraph graph_of(CUfunction of)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(of, NULL);
	CUgraphNode node;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	return graph;
}

static void make_graphs(void)
{
	CUgraph graph, inner;

	load(small_text);
	graph = inner = graph_of(function);
	if (way_now == CHILD || way_now == NODE) {
		MUST(cuGraphCreate(&graph, 0));
		MUST(cuGraphAddChildGraphNode(&child_node, graph, NULL, 0, inner));
	}
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	/* Another one, which was not launched. */
	load(small_text);
	other = graph_of(function);
}

static void *update(void *unused)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = other}};
	CUgraphExecUpdateResultInfo info;
	CUgraphExecUpdateResult result;
	CUgraphNode node;

	MUST(cuCtxSetCurrent(context));
	if (way_now == UPDATE)
		cuGraphExecUpdate_v2(exec, other, &info);
	else if (way_now == OLD_UPDATE)
		cuGraphExecUpdate(exec, other, &node, &result);
	else if (way_now == CHILD)
		cuGraphExecChildGraphNodeSetParams(exec, child_node, other);
	else
		cuGraphExecNodeSetParams(exec, child_node, &params);
	return unused;
}

static void exchange(void)
{
	const CUfunction before = function;

	for (int i = 0; i < ROUNDS && cuModuleUnload(module) == CUDA_SUCCESS; i++) {
		load(large_text);
		if (function == before)
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
	make_graphs();
	thread = hostile_begin_slowly(update);
	exchange();
	MUST(pthread_join(thread, NULL));
	cuGraphLaunch(exec, NULL);
	cuStreamSynchronize(NULL);
	hostile_look();
}

/* Each in a process of its own, one after the other: frames stay with the context. */
static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB,
			.is_slow_only = true,
			.is_brief = true,
			.slow_calls = {"cuGraphExecUpdate_v2", "cuGraphExecUpdate",
				"cuGraphExecChildGraphNodeSetParams", "cuGraphExecNodeSetParams"},
			.attack = attack});
}
