/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load families: graphs with nodes that allocate and free, graphs captured from a stream, and trims. A
 * graph that leaves something allocated is launched anew only after that was freed.
 */
#include "tests/tenant/load/load.h"

/* What an executable graph leaves allocated is in `bytes`; 0: it frees all that it allocates. */
static CUgraphExec exec_of(const struct load_held *held)
{
	return (CUgraphExec)(uintptr_t)held->value;
}

static CUresult free_left(struct load *l, CUdeviceptr left)
{
	const struct door *cu = &l->client->cu;

	if (!left)
		return CUDA_SUCCESS;
	return load_below(l, 2) ? cu->cuMemFreeAsync(left, NULL) : cu->cuMemFree_v2(left);
}

static CUresult fill(struct load *l, CUgraph graph, CUdeviceptr *ret_left)
{
	const struct door *cu = &l->client->cu;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}},
		.bytesize = load_random_bytes(l)};
	CUgraphNode first, second;
	CUresult r = cu->cuGraphAddMemAllocNode(&first, graph, NULL, 0, &params);

	*ret_left = params.dptr;
	if (r != CUDA_SUCCESS || load_below(l, 2))
		return r;
	*ret_left = 0;
	return cu->cuGraphAddMemFreeNode(&second, graph, &first, 1, params.dptr);
}

static CUresult capture(struct load *l, CUstream stream, CUgraph *ret_graph, CUdeviceptr *ret_left)
{
	const struct door *cu = &l->client->cu;
	CUresult r = cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = cu->cuMemAllocAsync(ret_left, load_random_bytes(l), stream);
	if (r == CUDA_SUCCESS && load_below(l, 2)) {
		r = cu->cuMemFreeAsync(*ret_left, stream);
		*ret_left = 0;
	}
	end = cu->cuStreamEndCapture(stream, ret_graph);
	return r == CUDA_SUCCESS ? end : r;
}

/* Instantiates, and launches for the first time. The graph is not needed any longer then. */
static CUresult start(struct load *l, CUgraph graph, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUgraphExec exec = NULL;
	CUresult r = cu->cuGraphInstantiateWithFlags(&exec, graph, 0);
	CUresult end = cu->cuGraphDestroy(graph);

	if (r != CUDA_SUCCESS || end != CUDA_SUCCESS)
		return r == CUDA_SUCCESS ? end : r;
	r = cu->cuGraphLaunch(exec, NULL);
	if (r == CUDA_SUCCESS) {
		ret_held->value = (uintptr_t)exec;
		return r;
	}
	end = cu->cuGraphExecDestroy(exec);
	return end == CUDA_SUCCESS ? r : end;
}

static CUresult take_graph(struct load *l, struct load_held *ret_held)
{
	CUgraph graph = NULL;
	CUresult r = l->client->cu.cuGraphCreate(&graph, 0);

	if (r == CUDA_SUCCESS)
		r = fill(l, graph, &ret_held->bytes);
	return r == CUDA_SUCCESS ? start(l, graph, ret_held) : r;
}

static CUresult take_captured(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUgraph graph = NULL;
	CUstream stream;
	CUresult r = cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), end;

	if (r != CUDA_SUCCESS)
		return r;
	r = capture(l, stream, &graph, &ret_held->bytes);
	if (r == CUDA_SUCCESS)
		r = start(l, graph, ret_held);
	end = cu->cuStreamDestroy_v2(stream);
	return end == CUDA_SUCCESS ? r : end;
}

/* Now and then launched once more: what that leaves allocated is freed like what the first left. */
static CUresult give_graph(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;
	CUresult r = free_left(l, held->bytes);

	for (uint64_t again = load_below(l, 3); again > 0 && r == CUDA_SUCCESS; again--) {
		r = cu->cuGraphLaunch(exec_of(held), NULL);
		if (r == CUDA_SUCCESS)
			r = free_left(l, held->bytes);
	}
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	return cu->cuGraphExecDestroy(exec_of(held));
}

/* Launched once more. What the last launch left allocated is freed before; where it may be refused it stays. */
static CUresult use_graph(struct load *l, const struct load_held *held)
{
	CUresult r = CUDA_SUCCESS;

	if (held->bytes && !l->is_hostile)
		return r;
	r = free_left(l, held->bytes);

	if (r == CUDA_SUCCESS)
		r = l->client->cu.cuGraphLaunch(exec_of(held), NULL);
	return r;
}

static CUresult trim(struct load *l, struct load_held *ret_held)
{
	return l->client->cu.cuDeviceGraphMemTrim(l->client->device);
}

/* What the device keeps for graphs outlives contexts. */
static CUresult end_trim(struct load *l)
{
	return trim(l, NULL);
}

const struct load_family load_graph = {.bears_misuse = true,
	.weight = 48,
	.symbol = "cuGraphLaunch",
	.take = take_graph,
	.give = give_graph,
	.use = use_graph};
const struct load_family load_captured = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuGraphLaunch",
	.take = take_captured,
	.give = give_graph,
	.use = use_graph};
const struct load_family load_graph_trim = {
	.weight = 16, .symbol = "cuDeviceGraphMemTrim", .end = end_trim, .take = trim};
