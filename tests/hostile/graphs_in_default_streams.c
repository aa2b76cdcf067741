/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three graphs that allocate 2 GiB, work for 3 s and free them again, each launched in the default stream of a context of its own: they run
 * at once, so they cannot share memory.
 *
 * Streams were told apart by their number, and the default streams of all contexts have the same one: the second and the third launch were
 * taken for ones behind the first, which use its memory, and 7.5 GiB were held in a slice of 4 GiB. Now the context's life is part of it.
 */
#include "tests/hostile/hostile.h"

#define CONTEXTS 3

/* The simulated driver takes the time from the parameter's name; others look at the device's clock. */
static const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry work(.param .u64 duration_ns)\n{\n"
			   "\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
			   "\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
			   "again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
			   "\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

static CUgraphExec make(void)
{
	static uint64_t duration_ns = 3000000000;
	static void *parameters[] = {&duration_ns};
	CUDA_KERNEL_NODE_PARAMS_v2 work;
	CUgraphNode kernel;
	CUmodule module;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 2 * GIB};
	CUgraphNode alloc, freed;
	CUgraphExec exec;
	CUgraph graph;

	work = hostile_node(NULL, NULL);
	work.kernelParams = parameters;
	MUST(cuModuleLoadData(&module, code));
	MUST(cuModuleGetFunction(&work.func, module, "work"));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	MUST(cuGraphAddKernelNode_v2(&kernel, graph, &alloc, 1, &work));
	MUST(cuGraphAddMemFreeNode(&freed, graph, &kernel, 1, params.dptr));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void attack(void)
{
	CUcontext contexts[CONTEXTS];
	CUgraphExec execs[CONTEXTS];
	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
		execs[i] = make();
	}
	for (int i = 0; i < CONTEXTS; i++) {
		MUST(cuCtxSetCurrent(contexts[i]));
		cuGraphLaunch(execs[i], NULL);
	}
	usleep(1200000);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 4 * GIB, .is_brief = true, .attack = attack});
}
