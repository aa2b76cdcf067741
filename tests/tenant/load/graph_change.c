/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load family: kernels whose library has data that comes when they come into a graph: as the body of a condition, or into
 * an executable graph that is there, by an update or by a node's parameters.
 */
#include <stdio.h>

#include "tests/tenant/load/load.h"

/* What there is while an executable graph is made. */
struct making {
	struct load *l;
	CUkernel kernel;		   /* of the library that comes in */
	CUDA_KERNEL_NODE_PARAMS_v2 before; /* of a library that is there */
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
};

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

static CUresult bring_library(struct load *l, CUlibrary *ret_library, CUkernel *ret_kernel)
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

/* An executable graph of the kernel that is there. */
static CUresult begin_with(struct making *m)
{
	const struct door *cu = &m->l->client->cu;
	CUresult r = cu->cuGraphAddKernelNode_v2(&m->node, m->graph, NULL, 0, &m->before);

	return r == CUDA_SUCCESS ? cu->cuGraphInstantiateWithFlags(&m->exec, m->graph, 0) : r;
}

static CUresult update(struct making *m)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = node_of(m->kernel);
	CUgraphExecUpdateResultInfo info;
	const struct door *cu = &m->l->client->cu;
	CUgraphNode node;
	CUgraph other;
	CUresult r = begin_with(m), end;

	if (r == CUDA_SUCCESS)
		r = cu->cuGraphCreate(&other, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuGraphAddKernelNode_v2(&node, other, NULL, 0, &params);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphExecUpdate_v2(m->exec, other, &info);
	end = cu->cuGraphDestroy(other);
	return r == CUDA_SUCCESS ? end : r;
}

static CUresult set_params(struct making *m)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = node_of(m->kernel);
	const struct door *cu = &m->l->client->cu;
	CUresult r = begin_with(m);

	return r == CUDA_SUCCESS ? cu->cuGraphExecKernelNodeSetParams_v2(m->exec, m->node, &params)
				 : r;
}

static CUresult add_body(struct making *m)
{
	CUgraphNodeParams condition = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = CU_GRAPH_COND_TYPE_IF, .size = 1, .ctx = m->l->context}};
	CUDA_KERNEL_NODE_PARAMS_v2 params = node_of(m->kernel);
	const struct door *cu = &m->l->client->cu;
	CUresult r = LOAD_FN(cuGraphConditionalHandleCreate)(&condition.conditional.handle,
		m->graph, m->l->context, (unsigned)load_below(m->l, 2), 1);

	if (r == CUDA_SUCCESS)
		r = cu->cuGraphAddNode(&m->node, m->graph, NULL, 0, &condition);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphAddKernelNode_v2(
			&m->node, condition.conditional.phGraph_out[0], NULL, 0, &params);
	return r == CUDA_SUCCESS ? cu->cuGraphInstantiateWithFlags(&m->exec, m->graph, 0) : r;
}

static CUresult make(struct making *m)
{
	const struct door *cu = &m->l->client->cu;
	CUresult r = cu->cuGraphCreate(&m->graph, 0), end;

	if (r != CUDA_SUCCESS)
		return r;
	switch (load_below(m->l, 3)) {
	case 0:
		r = update(m);
		break;
	case 1:
		r = set_params(m);
		break;
	default:
		r = add_body(m);
	}
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphLaunch(m->exec, NULL);
	end = cu->cuGraphDestroy(m->graph);
	return r == CUDA_SUCCESS ? end : r;
}

static CUresult give(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUresult r = held->value ? cu->cuGraphExecDestroy((CUgraphExec)(uintptr_t)held->value)
				 : CUDA_SUCCESS;
	CUdeviceptr libraries[] = {held->bytes, held->other};

	for (unsigned i = 0; i < 2; i++) {
		CUresult end = libraries[i]
				       ? cu->cuLibraryUnload((CUlibrary)(uintptr_t)libraries[i])
				       : CUDA_SUCCESS;

		r = r == CUDA_SUCCESS ? end : r;
	}
	return r;
}

static CUresult take(struct load *l, struct load_held *ret_held)
{
	CUlibrary first = NULL, second = NULL;
	struct making m = {.l = l};
	CUkernel kernel;
	CUresult r = bring_library(l, &first, &kernel), undone;

	m.before = node_of(kernel);
	if (r == CUDA_SUCCESS)
		r = bring_library(l, &second, &m.kernel);
	if (r == CUDA_SUCCESS)
		r = make(&m);
	*ret_held = (struct load_held){.value = (uintptr_t)m.exec,
		.bytes = (uintptr_t)first,
		.other = (uintptr_t)second,
		.number = ret_held->number};
	if (r == CUDA_SUCCESS)
		return r;
	undone = give(l, ret_held);
	ret_held->value = 0;
	return undone == CUDA_SUCCESS ? r : undone;
}

static CUresult use(struct load *l, const struct load_held *held)
{
	return l->client->cu.cuGraphLaunch((CUgraphExec)(uintptr_t)held->value, NULL);
}

const struct load_family load_graph_change = {.bears_misuse = true,
	.weight = 8,
	.symbol = "cuLibraryLoadData",
	.stays_with_primary = true,
	.take = take,
	.give = give,
	.use = use};
