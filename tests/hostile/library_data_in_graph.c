/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of a library with 4 GiB of variables is put into a graph, which loads the library when it is instantiated
 * or changed.
 *
 * Room was reserved for a graph's nodes and frames alone, and 4.5 GiB were held in a slice of 2 GiB. Now a library
 * that was not used in the context is loaded, or refused, before the graph is made.
 */
#include "tests/hostile/hostile.h"

static CUkernel load(const char *variables)
{
	char text[HOSTILE_CODE_BYTES];
	CUlibrary library;
	CUkernel kernel;

	hostile_ptx(&(struct hostile_code){.variables = variables}, text);
	if (cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
		return NULL;
	MUST(cuLibraryGetKernel(&kernel, library, "k"));
	return kernel;
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_of(CUkernel kernel)
{
	static uint64_t out, n;
	static void *parameters[] = {&out, &n};

	return (CUDA_KERNEL_NODE_PARAMS_v2){.kern = kernel,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = parameters};
}

static void try(bool is_change)
{
	CUkernel small = load(NULL), large = load(".global .align 4 .b8 data[0x100000000];");
	CUDA_KERNEL_NODE_PARAMS_v2 first = node_of(is_change ? small : large),
				   then = node_of(large);
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	if (!small || !large)
		return;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &first));
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS)
		return;
	if (is_change)
		cuGraphExecKernelNodeSetParams_v2(exec, node, &then);
	hostile_look();
	cuGraphLaunch(exec, NULL);
	cuCtxSynchronize();
	hostile_look();
}

static void attack(void)
{
	hostile_begin();
	try(false);
	try(true);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
