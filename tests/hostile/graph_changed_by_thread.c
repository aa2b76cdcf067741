/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another thread changes a graph while it is instantiated, after the library has looked through it: an empty node becomes one that allocates,
 * under the same handle, or one with the device's heap, or one with deep frames, by itself or as a child; or a function's module goes, and
 * another one's function has its handle.
 *
 * The library looked again afterwards, for handles of nodes and functions alone: 8,956 MiB were held in a slice of 2 GiB for an allocation. What
 * a kernel brings it found and refused, and 8,850 for a heap and 15,724 for frames stayed until the context's end. Now no graph is changed
 * while one is instantiated, and no code goes.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

enum way { ALLOCATES, HEAP, FRAMES, CHILD, OTHER_CODE, WAYS };

static const struct hostile_code codes[WAYS] = {[HEAP] = {.has_heap = true},
	[FRAMES] = {.frame_bytes = 60000},
	[CHILD] = {.frame_bytes = 60000},
	[OTHER_CODE] = {.frame_bytes = 60000}};

static CUcontext context;
static CUmodule module;
static CUfunction function;
static CUgraph graph, child;
static CUgraphNode node;

static void load(const struct hostile_code *code)
{
	char text[HOSTILE_CODE_BYTES];

	MUST(cuModuleLoadData(&module, hostile_ptx(code, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
}

static void add_kernel(CUgraph to)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);

	MUST(cuGraphAddKernelNode_v2(&node, to, NULL, 0, &params));
}

static void exchange(enum way way)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 8 * GIB};

	if (way == OTHER_CODE) {
		/* Of 20 that come and go one has the place of the one that went. */
		CUfunction before = function;

		for (unsigned i = 0; i < 20 && (i == 0 || function != before); i++) {
			cuModuleUnload(module);
			load(&codes[way]);
		}
		return;
	}
	cuGraphDestroyNode(node);
	if (way == ALLOCATES)
		cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory);
	else if (way == CHILD)
		cuGraphAddChildGraphNode(&node, graph, NULL, 0, child);
	else
		add_kernel(graph);
}

static void *change(void *way)
{
	cuCtxSetCurrent(context);
	/* The driver's call takes 50 ms. */
	usleep(15000);
	exchange(*(const enum way *)way);
	return NULL;
}

static void try(enum way way)
{
	CUgraphExec exec;
	pthread_t thread;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphCreate(&child, 0));
	load(way == OTHER_CODE ? &(struct hostile_code){.frame_bytes = 16} : &codes[way]);
	if (way == CHILD)
		add_kernel(child);
	if (way == OTHER_CODE)
		add_kernel(graph);
	else
		MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	MUST(pthread_create(&thread, NULL, change, &way));
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS)
		cuGraphLaunch(exec, NULL);
	hostile_look();
	MUST(pthread_join(thread, NULL));
	cuCtxSynchronize();
	hostile_look();
}

static enum way way_now;

static void attack_so(int unused)
{
	context = hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	try(way_now);
}

/* Each in a process of its own, one after the other: frames and a heap stay with the context. */
static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_brief = true,
					  .attack = attack,
					  .slow_calls = {"cuGraphInstantiateWithFlags"},
					  .is_slow_only = true});
}
