/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library from a fat binary has 4 GiB of variables, which nobody knows of until it is used for the first time: its
 * module, a variable of it, or a kernel is asked for, or that is launched or put into a graph.
 *
 * The use was refused after the library had been loaded, which stayed: 4.5 GiB were held in a slice of 2 GiB. Now it is
 * unloaded again, and its handles are good for nothing but that the program unloads it, too.
 */
#include "tests/hostile/hostile.h"

enum way { MODULE, VARIABLE, FUNCTION, LAUNCH, GRAPH, WAYS };

static CUresult use(enum way way, CUlibrary library, CUkernel kernel)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node = hostile_node(NULL, kernel);
	CUgraphNode added;
	CUfunction function;
	CUdeviceptr data;
	CUmodule module;
	CUgraph graph;
	size_t bytes;

	switch (way) {
	case MODULE:
		return cuLibraryGetModule(&module, library);
	case VARIABLE:
		return cuLibraryGetGlobal(&data, &bytes, library, "data");
	case FUNCTION:
		return cuKernelGetFunction(&function, kernel);
	case LAUNCH:
		return hostile_launch((CUfunction)kernel, NULL);
	default:
		MUST(cuGraphCreate(&graph, 0));
		return cuGraphAddKernelNode_v2(&added, graph, NULL, 0, &node);
	}
}

/* The driver must not see handles of what it has unloaded. */
static void use_again(CUlibrary library, CUkernel kernel)
{
	CUlibrary of;
	int value;

	for (int way = MODULE; way < WAYS; way++)
		use(way, library, kernel);
	cuLibraryGetKernel(&kernel, library, "k");
	cuKernelGetLibrary(&of, kernel);
	cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0);
	cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, (CUfunction)kernel, 32, 0);
	cuCtxSynchronize();
}

static void attack(void)
{
	struct hostile_code code = {
		.variables = ".visible .global .align 4 .b8 data[0x100000000];"};
	CUlibrary library;
	CUkernel kernel;

	hostile_begin();
	for (int way = MODULE; way < WAYS; way++) {
		MUST(cuLibraryLoadData(
			&library, hostile_fat_binary(&code), NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, library, "k"));
		use(way, library, kernel);
		hostile_look();
		use_again(library, kernel);
		hostile_look();
		MUST(cuLibraryUnload(library));
	}
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
