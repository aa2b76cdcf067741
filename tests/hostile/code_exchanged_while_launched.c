/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel is launched for the first time, or comes into an executable graph, while another thread unloads its code, and loads others until a
 * kernel of one has its handle: with frames of 60,000 bytes, or in a library with 8 GiB of variables.
 *
 * What was reserved was for the one that went: 15,726 MiB were held in a slice of 2 GiB. Now code that such a call uses is not unloaded
 * meanwhile.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 30

enum way { FRAMES, LIBRARY, EXECUTABLE, WAYS };

static CUcontext context;
static CUmodule module;
static CUlibrary library;
static CUfunction function;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];
static enum way way_now;
static CUgraphExec exec;
static CUgraphNode node;

static void load(const char *text)
{
	CUkernel kernel;

	if (way_now == LIBRARY) {
		MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, library, "k"));
		function = (CUfunction)kernel;
	} else {
		MUST(cuModuleLoadData(&module, text));
		MUST(cuModuleGetFunction(&function, module, "k"));
	}
}

static CUresult unload(void)
{
	return way_now == LIBRARY ? cuLibraryUnload(library) : cuModuleUnload(module);
}

static void make_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	/* Another one, which was not launched. */
	load(small_text);
}

static void *launch(void *unused)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);

	MUST(cuCtxSetCurrent(context));
	if (way_now == EXECUTABLE)
		cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	else
		hostile_launch(function, NULL);
	return unused;
}

static void exchange(void)
{
	const CUfunction before = function;

	for (int i = 0; i < ROUNDS && unload() == CUDA_SUCCESS; i++) {
		load(large_text);
		if (function == before)
			return;
	}
}

static void attack_so(int unused)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code frames = {.frame_bytes = 60000};
	struct hostile_code data = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};
	CUfunction loaded;
	pthread_t thread;

	context = hostile_begin();
	hostile_ptx(&small, small_text);
	hostile_ptx(way_now == LIBRARY ? &data : &frames, large_text);
	/* What has ended is some, as in a program that has run for a while. */
	for (int i = 0; i < ROUNDS; i++) {
		load(small_text);
		MUST(unload());
	}
	load(small_text);
	if (way_now == LIBRARY)
		MUST(cuKernelGetFunction(&loaded, (CUkernel)function));
	if (way_now == EXECUTABLE)
		make_graph();
	thread = hostile_begin_slowly(launch);
	exchange();
	MUST(pthread_join(thread, NULL));
	usleep(100000);
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
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 2 * GIB,
			      .is_slow_only = true,
			      .is_brief = true,
			      .slow_calls = {"cuLaunchKernel", "cuGraphExecKernelNodeSetParams_v2"},
			      .attack = attack});
}
