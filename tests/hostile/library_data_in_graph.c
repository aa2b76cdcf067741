/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of a library with 4 GiB of variables is put into a graph, which loads the library when the node is added
 * or changed, in the graph or in the executable one.
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

enum way { ADD, ADD_ANY, CHANGE_NODE, CHANGE_ANY_NODE, CHANGE_EXECUTABLE, WAYS };

static CUresult add(enum way way, CUgraph graph, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel,
	CUgraphNode *ret_node)
{
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *kernel};

	return way == ADD_ANY ? cuGraphAddNode(ret_node, graph, NULL, 0, &any)
			      : cuGraphAddKernelNode_v2(ret_node, graph, NULL, 0, kernel);
}

static void change(enum way way, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *kernel};

	if (way == CHANGE_NODE)
		cuGraphKernelNodeSetParams_v2(node, kernel);
	else if (way == CHANGE_ANY_NODE)
		cuGraphNodeSetParams(node, &any);
}

static void try(enum way way)
{
	CUkernel small = load(NULL), large = load(".global .align 4 .b8 data[0x100000000];");
	CUDA_KERNEL_NODE_PARAMS_v2 first = hostile_node(NULL, way > ADD_ANY ? small : large),
				   then = hostile_node(NULL, large);
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	if (!small || !large)
		return;
	MUST(cuGraphCreate(&graph, 0));
	if (add(way, graph, &first, &node) != CUDA_SUCCESS)
		return;
	change(way, node, &then);
	hostile_look();
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS)
		return;
	if (way == CHANGE_EXECUTABLE)
		cuGraphExecKernelNodeSetParams_v2(exec, node, &then);
	hostile_look();
	cuGraphLaunch(exec, NULL);
	cuCtxSynchronize();
	hostile_look();
}

static void attack(void)
{
	hostile_begin();
	for (int way = ADD; way < WAYS; way++)
		try(way);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
