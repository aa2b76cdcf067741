/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load family: kernels of libraries in graphs. A library's data comes with the first use of it, which may be the node,
 * a child graph or the executable graph.
 */
#include <stdio.h>

#include "tests/tenant/load/load.h"

static CUresult make_library(struct load *l, CUlibrary *ret_library, CUkernel *ret_kernel)
{
	const struct door *cu = &l->client->cu;
	char text[256];
	CUresult r;

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .global .align 4 .b8 data[%llu];\n.visible .entry nothing()\n{ ret; }\n",
		(unsigned long long)(1 + load_below(l, 16 * LOAD_MIB)));
	r = cu->cuLibraryLoadData(ret_library, text, NULL, NULL, 0, NULL, NULL, 0);
	return r == CUDA_SUCCESS ? cu->cuLibraryGetKernel(ret_kernel, *ret_library, "nothing") : r;
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_of(CUkernel kernel)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){.kern = kernel,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
}

/* The kernel is in the graph itself, or in a child of it. */
static CUresult add(struct load *l, CUgraph graph, CUkernel kernel)
{
	const struct door *cu = &l->client->cu;
	CUDA_KERNEL_NODE_PARAMS_v2 params = node_of(kernel);
	CUgraphNode node;
	CUgraph child;
	CUresult r, end;

	if (load_below(l, 2))
		return cu->cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	r = cu->cuGraphCreate(&child, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuGraphAddKernelNode_v2(&node, child, NULL, 0, &params);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphAddChildGraphNode(&node, graph, NULL, 0, child);
	end = cu->cuGraphDestroy(child);
	return r == CUDA_SUCCESS ? end : r;
}

static CUresult start(struct load *l, CUkernel kernel, CUgraphExec *ret_exec)
{
	const struct door *cu = &l->client->cu;
	CUgraph graph;
	CUresult r = cu->cuGraphCreate(&graph, 0), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = add(l, graph, kernel);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphInstantiateWithFlags(ret_exec, graph, 0);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphLaunch(*ret_exec, NULL);
	end = cu->cuGraphDestroy(graph);
	return r == CUDA_SUCCESS ? end : r;
}

static CUresult end(struct load *l, CUgraphExec exec, CUlibrary library)
{
	const struct door *cu = &l->client->cu;
	CUresult r = exec ? cu->cuGraphExecDestroy(exec) : CUDA_SUCCESS, unload;

	unload = library ? cu->cuLibraryUnload(library) : CUDA_SUCCESS;
	return r == CUDA_SUCCESS ? unload : r;
}

static CUresult take(struct load *l, struct load_held *ret_held)
{
	CUlibrary library = NULL;
	CUgraphExec exec = NULL;
	CUkernel kernel = NULL;
	CUresult r = make_library(l, &library, &kernel), undone;

	if (r == CUDA_SUCCESS)
		r = start(l, kernel, &exec);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)exec;
		ret_held->other = (uintptr_t)library;
		return r;
	}
	undone = end(l, exec, library);
	return undone == CUDA_SUCCESS ? r : undone;
}

static CUresult give(struct load *l, const struct load_held *held)
{
	return end(l, (CUgraphExec)(uintptr_t)held->value, (CUlibrary)(uintptr_t)held->other);
}

static CUresult use(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuGraphLaunch((CUgraphExec)(uintptr_t)held->value, NULL);
}

const struct load_family load_library_graph = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuLibraryLoadData",
	.stays_with_primary = true,
	.take = take,
	.give = give,
	.use = use};
