/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that allocates from the device's heap, whose limit is 8 GiB, is never launched but put into graphs: into
 * one that is instantiated, into its child, into a conditional node, whether it runs or not, in the place of another
 * kernel of an executable graph (one node, the child, the whole graph), and in a context that is not current. The
 * heap comes when the graph is made.
 *
 * Room was reserved for a graph's nodes and frames alone, and 8.6 GiB were held in a slice of 2 GiB. Now a graph is
 * looked through for what its kernels bring, in the context of each.
 */
#include "tests/hostile/hostile.h"

enum way {
	WHOLE,
	CHILD,
	BODY,
	LEFT_OUT,
	NODE,
	NODE_OF_ANY_TYPE,
	CHILD_NODE,
	UPDATE,
	OTHER_CONTEXT,
	WAYS
};

struct kernels {
	CUfunction plain, heap;
};

static CUfunction load(bool has_heap)
{
	char text[HOSTILE_CODE_BYTES];
	CUfunction function;
	CUmodule module;

	hostile_ptx(&(struct hostile_code){.has_heap = has_heap}, text);
	if (cuModuleLoadData(&module, text) != CUDA_SUCCESS)
		return NULL;
	MUST(cuModuleGetFunction(&function, module, "k"));
	return function;
}

static CUgraph graph_of(CUfunction function, CUgraphNode *ret_node)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(ret_node, graph, NULL, 0, &params));
	return graph;
}

static CUgraph parent_of(CUgraph child, CUgraphNode *ret_node)
{
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddChildGraphNode(ret_node, graph, NULL, 0, child));
	return graph;
}

static CUgraph conditional_of(CUfunction function, unsigned int value)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = hostile_node(function, NULL);
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = CU_GRAPH_COND_TYPE_IF, .size = 1}};
	CUgraphNode node;
	CUgraph graph;

	MUST(cuCtxGetCurrent(&any.conditional.ctx));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphConditionalHandleCreate(
		&any.conditional.handle, graph, any.conditional.ctx, value, 1));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &any));
	MUST(cuGraphAddKernelNode_v2(&node, any.conditional.phGraph_out[0], NULL, 0, &params));
	return graph;
}

static void change(enum way way, const struct kernels *kernels)
{
	CUDA_KERNEL_NODE_PARAMS_v2 heap = hostile_node(kernels->heap, NULL);
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = heap};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node, child, ignored;
	CUgraph graph = graph_of(kernels->plain, &node);
	CUgraphExec exec;

	if (way == CHILD_NODE)
		graph = parent_of(graph, &child);
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS)
		return;
	if (way == NODE)
		cuGraphExecKernelNodeSetParams_v2(exec, node, &heap);
	else if (way == NODE_OF_ANY_TYPE)
		cuGraphExecNodeSetParams(exec, node, &any);
	else if (way == CHILD_NODE)
		cuGraphExecChildGraphNodeSetParams(exec, child, graph_of(kernels->heap, &ignored));
	else
		cuGraphExecUpdate_v2(exec, graph_of(kernels->heap, &ignored), &info);
	hostile_look();
	cuGraphLaunch(exec, NULL);
}

static void make(enum way way, const struct kernels *kernels)
{
	CUgraphNode node;
	CUgraph graph = graph_of(kernels->heap, &node);
	CUgraphExec exec;

	if (way == CHILD)
		graph = parent_of(graph, &node);
	if (way == BODY || way == LEFT_OUT)
		graph = conditional_of(kernels->heap, way == BODY);
	if (cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS)
		cuGraphLaunch(exec, NULL);
}

static void try(enum way way, CUcontext context)
{
	struct kernels kernels;
	CUcontext other = NULL;

	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	kernels = (struct kernels){load(false), load(true)};
	if (!kernels.plain || !kernels.heap)
		return;
	if (way == OTHER_CONTEXT && cuCtxCreate_v2(&other, 0, 0) != CUDA_SUCCESS)
		return;
	if (way < NODE || way == OTHER_CONTEXT)
		make(way, &kernels);
	else
		change(way, &kernels);
	hostile_look();
	cuCtxSetCurrent(context);
	cuCtxSynchronize();
	hostile_look();
	if (other)
		MUST(cuCtxDestroy_v2(other));
}

static void attack(void)
{
	MUST(cuInit(0));
	for (enum way way = 0; way < WAYS; way++) {
		CUcontext context = hostile_begin();

		try(way, context);
		MUST(cuDevicePrimaryCtxReset_v2(0));
	}
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
