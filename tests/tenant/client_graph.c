/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's words for graphs. */
#include "tests/tenant/client.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry spin(\n\t.param .u64 duration_ns\n)\n{ ret; }\n";

static CUgraph graph_named(struct client *c, const char *name)
{
	return (CUgraph)(uintptr_t)client_get(c, name);
}

static CUgraphExec exec_named(struct client *c, const char *name)
{
	return (CUgraphExec)(uintptr_t)client_get(c, name);
}

/* Nodes of a graph follow each other: the last one stands under the graph's name with a dot. */
static const char *last_of(const char *graph)
{
	static char name[32];

	snprintf(name, sizeof(name), ".%s", graph);
	return name;
}

static int run_graph(struct client *c, char **word, unsigned count)
{
	CUgraph graph;
	CUresult r = c->cu.cuGraphCreate(&graph, 0);

	if (r == CUDA_SUCCESS) {
		client_put(c, word[1], (uintptr_t)graph);
		client_put(c, last_of(word[1]), 0);
	}
	return (int)r;
}

static int run_endgraph(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuGraphDestroy(graph_named(c, word[1]));
}

static int added(struct client *c, const char *graph, CUresult r, CUgraphNode node)
{
	if (r == CUDA_SUCCESS)
		client_put(c, last_of(graph), (uintptr_t)node);
	return (int)r;
}

/* gmem GRAPH NAME SIZE [DEVICE [generic|first]]: a node that allocates */
static int run_gmem(struct client *c, char **word, unsigned count)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUgraphNode node = NULL, last = (CUgraphNode)(uintptr_t)client_get(c, last_of(word[1]));
	CUgraph graph = graph_named(c, word[1]);
	CUresult r;

	params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.alloc.poolProps.location.id = count > 4 ? (int)client_size(word[4]) : c->device;
	params.alloc.bytesize = client_size(word[3]);
	if (count > 5 && strcmp(word[5], "first") == 0)
		r = c->cu.cuGraphAddNode(&node, graph, &last, last != NULL, &params);
	else if (count > 5)
		r = c->cu.cuGraphAddNode_v2(&node, graph, &last, NULL, last != NULL, &params);
	else
		r = c->cu.cuGraphAddMemAllocNode(&node, graph, &last, last != NULL, &params.alloc);
	if (r == CUDA_SUCCESS)
		client_put(c, word[2], params.alloc.dptr);
	return added(c, word[1], r, node);
}

static int run_gfree(struct client *c, char **word, unsigned count)
{
	CUgraphNode node = NULL, last = (CUgraphNode)(uintptr_t)client_get(c, last_of(word[1]));

	return added(c, word[1],
		c->cu.cuGraphAddMemFreeNode(&node, graph_named(c, word[1]), &last, last != NULL,
			client_get(c, word[2])),
		node);
}

/* Once for the first context that asks, and each time for others, which may end. */
static CUresult load_spin(struct client *c, CUfunction *ret_function)
{
	static CUcontext first;
	static CUfunction function;
	CUcontext context = NULL;
	CUmodule module;
	CUresult r = c->cu.cuCtxGetCurrent(&context);

	if (r == CUDA_SUCCESS && context == first && function) {
		*ret_function = function;
		return r;
	}
	if (r == CUDA_SUCCESS)
		r = c->cu.cuModuleLoadData(&module, kernels);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuModuleGetFunction(ret_function, module, "spin");
	if (r == CUDA_SUCCESS && !function) {
		first = context;
		function = *ret_function;
	}
	return r;
}

/* gspin GRAPH COUNT MICROSECONDS: so many nodes with kernels that take so long */
static int run_gspin(struct client *c, char **word, unsigned count)
{
	uint64_t duration_ns = client_size(word[3]) * 1000;
	CUgraphNode node = (CUgraphNode)(uintptr_t)client_get(c, last_of(word[1])), last;
	void *values[] = {&duration_ns};
	CUDA_KERNEL_NODE_PARAMS_v2 params = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = values};
	CUresult r = load_spin(c, &params.func);

	for (uint64_t i = client_size(word[2]); i > 0 && r == CUDA_SUCCESS; i--) {
		last = node;
		r = c->cu.cuGraphAddKernelNode_v2(
			&node, graph_named(c, word[1]), &last, last != NULL, &params);
	}
	return added(c, word[1], r, node);
}

static int run_capture(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuStreamBeginCapture_v2(
		client_stream(c, word, count, 1), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static int run_endcapture(struct client *c, char **word, unsigned count)
{
	CUgraph graph = NULL;
	CUresult r = c->cu.cuStreamEndCapture(client_stream(c, word, count, 1), &graph);

	if (r == CUDA_SUCCESS)
		client_put(c, word[2], (uintptr_t)graph);
	return (int)r;
}

/*
 * instantiate EXEC GRAPH [FLAGS [STREAM]]; old or first for FLAGS: as CUDA 11 or 10 has it; a stream:
 * with parameters
 */
static int run_instantiate(struct client *c, char **word, unsigned count)
{
	bool is_old = count > 3 && strcmp(word[3], "old") == 0;
	bool is_first = count > 3 && strcmp(word[3], "first") == 0;
	unsigned long long flags = count > 3 && !is_old && !is_first ? client_size(word[3]) : 0;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {
		.flags = flags, .hUploadStream = client_stream(c, word, count, 4)};
	CUgraph graph = graph_named(c, word[2]);
	CUgraphExec exec = NULL;
	CUresult r;

	if (is_old)
		r = c->cu.cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0);
	else if (is_first)
		r = c->cu.cuGraphInstantiate(&exec, graph, NULL, NULL, 0);
	else if (count > 4)
		r = c->cu.cuGraphInstantiateWithParams(&exec, graph, &params);
	else
		r = c->cu.cuGraphInstantiateWithFlags(&exec, graph, flags);
	if (r == CUDA_SUCCESS)
		client_put(c, word[1], (uintptr_t)exec);
	return (int)r;
}

static int run_endexec(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuGraphExecDestroy(exec_named(c, word[1]));
}

static int run_update(struct client *c, char **word, unsigned count)
{
	CUgraphExecUpdateResultInfo info;

	return (int)c->cu.cuGraphExecUpdate_v2(
		exec_named(c, word[1]), graph_named(c, word[2]), &info);
}

/* The other nodes of a graph of its own, with the graph as a child. */
static CUresult change_child(struct client *c, CUgraph child)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph parent;
	CUresult r = c->cu.cuGraphCreate(&parent, 0);

	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphAddChildGraphNode(&node, parent, NULL, 0, child);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphInstantiateWithFlags(&exec, parent, 0);
	return r == CUDA_SUCCESS ? c->cu.cuGraphExecChildGraphNodeSetParams(exec, node, child) : r;
}

/* change EXEC GRAPH: its last node, a kernel, again in each way that there is */
static int run_change(struct client *c, char **word, unsigned count)
{
	CUgraphNode node = (CUgraphNode)(uintptr_t)client_get(c, last_of(word[2])), error_node;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	CUgraph graph = graph_named(c, word[2]);
	CUgraphExec exec = exec_named(c, word[1]);
	CUDA_KERNEL_NODE_PARAMS_v1 first;
	CUgraphExecUpdateResult result;
	uint64_t duration_ns = 0;
	void *values[] = {&duration_ns};
	CUresult r = load_spin(c, &params.kernel.func);

	params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
	params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
	params.kernel.kernelParams = values;
	memcpy(&first, &params.kernel, sizeof(first));
	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphExecKernelNodeSetParams(exec, node, &first);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params.kernel);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphExecNodeSetParams(exec, node, &params);
	if (r == CUDA_SUCCESS)
		r = c->cu.cuGraphExecUpdate(exec, graph, &error_node, &result);
	return (int)(r == CUDA_SUCCESS ? change_child(c, graph) : r);
}

static int run_upload(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuGraphUpload(exec_named(c, word[1]), client_stream(c, word, count, 2));
}

/* glaunch EXEC [STREAM [TIMES]] */
static int run_launch(struct client *c, char **word, unsigned count)
{
	uint64_t times = count > 3 ? client_size(word[3]) : 1;
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < times && r == CUDA_SUCCESS; i++)
		r = c->cu.cuGraphLaunch(exec_named(c, word[1]), client_stream(c, word, count, 2));
	return (int)r;
}

/* inturn EXEC STREAM EXEC STREAM TIMES: launches one after the other, without a wait between */
static int run_inturn(struct client *c, char **word, unsigned count)
{
	uint64_t times = client_size(word[5]);
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < times && r == CUDA_SUCCESS; i++) {
		r = c->cu.cuGraphLaunch(exec_named(c, word[1]), client_stream(c, word, count, 2));
		if (r == CUDA_SUCCESS)
			r = c->cu.cuGraphLaunch(
				exec_named(c, word[3]), client_stream(c, word, count, 4));
	}
	return (int)r;
}

static int run_gtrim(struct client *c, char **word, unsigned count)
{
	return (int)c->cu.cuDeviceGraphMemTrim(count > 1 ? (int)client_size(word[1]) : c->device);
}

static int run_greserved(struct client *c, char **word, unsigned count)
{
	cuuint64_t bytes = 0;
	CUresult r = c->cu.cuDeviceGetGraphMemAttribute(
		c->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);

	client_say(c, " bytes=%llu", (unsigned long long)bytes);
	return (int)r;
}

/* fillgraphs SIZE: graphs that keep what they allocate, launched until one is refused */
static int run_fillgraphs(struct client *c, char **word, unsigned count)
{
	char graph[] = "fg", name[] = "fm", exec[] = "fe";
	char *make[] = {NULL, graph}, *mem[] = {NULL, graph, name, word[1]},
	     *instantiate[] = {NULL, exec, graph}, *launch[] = {NULL, exec};
	uint64_t taken = 0;
	int r;

	for (;;) {
		r = run_graph(c, make, 2);
		r = r ? r : run_gmem(c, mem, 4);
		r = r ? r : run_instantiate(c, instantiate, 3);
		r = r ? r : run_launch(c, launch, 2);
		if (r)
			break;
		client_keep(c, client_get(c, name));
		taken++;
	}
	client_say(c, " count=%llu", (unsigned long long)taken);
	return r;
}

#define LAUNCHERS_MOST 16

struct launcher {
	struct client *client;
	CUcontext context;
	uint64_t bytes, rounds, refused;
	unsigned number;
	CUresult result;
};

static CUresult make_own_graph(struct launcher *l, CUgraph *ret_graph)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = l->bytes};
	CUgraphNode first, second;
	CUresult r = l->client->cu.cuGraphCreate(ret_graph, 0);

	if (r == CUDA_SUCCESS)
		r = l->client->cu.cuGraphAddMemAllocNode(&first, *ret_graph, NULL, 0, &params);
	if (r == CUDA_SUCCESS)
		r = l->client->cu.cuGraphAddMemFreeNode(
			&second, *ret_graph, &first, 1, params.dptr);
	return r;
}

/* One graph on a stream of its own, launched again and again; now and then it trims. */
static void *launch_often(void *arg)
{
	struct launcher *l = arg;
	const struct door *cu = &l->client->cu;
	CUgraphExec exec = NULL;
	CUstream stream;
	CUgraph graph;
	CUresult r = cu->cuCtxSetCurrent(l->context);

	if (r == CUDA_SUCCESS)
		r = cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = make_own_graph(l, &graph);
	if (r == CUDA_SUCCESS)
		r = cu->cuGraphInstantiateWithFlags(&exec, graph, 0);
	for (uint64_t i = 0; i < l->rounds && r == CUDA_SUCCESS; i++) {
		r = cu->cuGraphLaunch(exec, stream);
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			l->refused++;
			r = CUDA_SUCCESS;
		}
		if (r == CUDA_SUCCESS && i % 16 == l->number)
			r = cu->cuDeviceGraphMemTrim(0);
	}
	l->result = r;
	return NULL;
}

/* launchers THREADS ROUNDS SIZE: refused=N */
static int run_launchers(struct client *c, char **word, unsigned count)
{
	unsigned threads = (unsigned)client_size(word[1]);
	struct launcher work[LAUNCHERS_MOST];
	pthread_t thread[LAUNCHERS_MOST];
	uint64_t refused = 0;
	CUcontext context;
	int result = 0;

	if (threads > LAUNCHERS_MOST || c->cu.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
		return CLIENT_FAILED;
	for (unsigned i = 0; i < threads; i++) {
		work[i] = (struct launcher){.client = c,
			.context = context,
			.bytes = client_size(word[3]),
			.rounds = client_size(word[2]),
			.number = i};
		if (pthread_create(&thread[i], NULL, launch_often, &work[i]))
			return CLIENT_FAILED;
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		refused += work[i].refused;
		result = work[i].result ? (int)work[i].result : result;
	}
	client_say(c, " refused=%llu", (unsigned long long)refused);
	return result;
}

const struct client_command client_graph_commands[] = {
	{"graph", 1, run_graph, "GRAPH"},
	{"endgraph", 1, run_endgraph, "GRAPH"},
	{"gmem", 3, run_gmem, "GRAPH NAME SIZE [DEVICE [generic|first]]"},
	{"gfree", 2, run_gfree, "GRAPH NAME"},
	{"gspin", 3, run_gspin, "GRAPH COUNT MICROSECONDS"},
	{"capture", 1, run_capture, "STREAM"},
	{"endcapture", 2, run_endcapture, "STREAM GRAPH"},
	{"instantiate", 2, run_instantiate, "EXEC GRAPH [FLAGS|old|first [STREAM]]"},
	{"endexec", 1, run_endexec, "EXEC"},
	{"update", 2, run_update, "EXEC GRAPH"},
	{"change", 2, run_change, "EXEC GRAPH"},
	{"upload", 1, run_upload, "EXEC [STREAM]"},
	{"glaunch", 1, run_launch, "EXEC [STREAM [TIMES]]"},
	{"inturn", 5, run_inturn, "EXEC STREAM EXEC STREAM TIMES"},
	{"gtrim", 0, run_gtrim, "[DEVICE]"},
	{"greserved", 0, run_greserved, ""},
	{"launchers", 3, run_launchers, "THREADS ROUNDS SIZE"},
	{"fillgraphs", 1, run_fillgraphs, "SIZE"},
	{0},
};
