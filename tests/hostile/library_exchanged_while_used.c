/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library is used while another thread unloads it, and loads others until one with 8 GiB of variables has its handle, or its kernel's: for the
 * first time or again, by its kernel, by a variable, or as a node of a graph.
 *
 * What was reserved, or known to be there, was the small one's, and the driver loaded the other: 8,710 MiB were held in a slice of 2 GiB. Now
 * code that a call uses is not unloaded meanwhile.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 30

enum way { KERNEL, KERNEL_AGAIN, VARIABLE, NODE, WAYS };

static CUcontext context;
static CUlibrary library;
static CUkernel kernel;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];
static enum way way_now;

static void load(const char *text)
{
	MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&kernel, library, "k"));
}

static void use(enum way way)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(NULL, kernel);
	CUdeviceptr pointer;
	CUfunction function;
	CUgraphNode node;
	CUgraph graph;
	size_t bytes;

	if (way == VARIABLE) {
		cuLibraryGetGlobal(&pointer, &bytes, library, "data");
	} else if (way == NODE) {
		MUST(cuGraphCreate(&graph, 0));
		cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	} else {
		cuKernelGetFunction(&function, kernel);
	}
}

static void *use_in_thread(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	use(way_now);
	return unused;
}

/* Libraries come and go until a handle is the one of before. For a kernel's, half of them have none, so that it is not both at once. */
static void exchange(void)
{
	const CUlibrary library_before = library;
	const CUkernel kernel_before = kernel;
	CUlibrary other;

	if (cuLibraryUnload(library) != CUDA_SUCCESS)
		return;
	for (int i = 0; i < ROUNDS; i++) {
		load(large_text);
		if (way_now == VARIABLE ? library == library_before : kernel == kernel_before)
			return;
		if (way_now != VARIABLE)
			MUST(cuLibraryLoadData(&other, small_text, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryUnload(library));
		if (way_now != VARIABLE)
			MUST(cuLibraryUnload(other));
	}
}

static void attack_so(int unused)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code large = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};
	pthread_t thread;

	context = hostile_begin();
	hostile_ptx(&small, small_text);
	hostile_ptx(&large, large_text);
	/* What has ended is some, as in a program that has run for a while. */
	for (int i = 0; i < ROUNDS; i++) {
		load(small_text);
		MUST(cuLibraryUnload(library));
	}
	load(small_text);
	if (way_now == KERNEL_AGAIN || way_now == NODE)
		use(KERNEL);
	thread = hostile_begin_slowly(use_in_thread);
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
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_slow_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuKernelGetFunction",
						  "cuLibraryGetGlobal", "cuGraphAddKernelNode_v2"},
					  .attack = attack});
}
