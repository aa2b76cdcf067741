/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, stream capture, and the memory of graphs: as measured on an H200, driver 580. */
#include "sim/tests/cuda/child.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(\n\t.param .u64 duration_ns\n)\n{ ret; }\n"
			  ".visible .entry empty()\n{ ret; }\n";

static CUfunction load(const char *name)
{
	static CUmodule module;
	CUfunction function;

	if (!module)
		OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static CUgraphNode add_spin(CUgraph graph, CUgraphNode after, uint64_t duration_ns)
{
	void *values[] = {&duration_ns};
	CUDA_KERNEL_NODE_PARAMS_v2 params = {.func = load("spin"),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = values};
	CUgraphNode node;

	OK(cuGraphAddKernelNode_v2(&node, graph, &after, after ? 1 : 0, &params));
	return node;
}

static CUDA_MEM_ALLOC_NODE_PARAMS memory(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = bytes};
}

/* A graph that allocates and, unless it keeps it, frees. */
static CUgraph memory_graph(size_t bytes, int is_kept, CUdeviceptr *ret_base)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = memory(bytes);
	CUgraphNode first, second;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&first, graph, NULL, 0, &params));
	if (!is_kept)
		OK(cuGraphAddMemFreeNode(&second, graph, &first, 1, params.dptr));
	*ret_base = params.dptr;
	return graph;
}

static CUgraphExec instantiate(CUgraph graph, unsigned long long flags)
{
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags(&exec, graph, flags));
	return exec;
}

static void destroy(CUgraph graph, CUgraphExec exec)
{
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static uint64_t attribute(CUgraphMem_attribute which)
{
	cuuint64_t value = 0;

	OK(cuDeviceGetGraphMemAttribute(0, which, &value));
	return value / MiB;
}

static void launch(CUgraphExec exec, CUstream stream)
{
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

TEST(memory_is_taken_at_upload_in_steps_and_given_back_by_a_trim)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNode n1, n2, n3, n4;
	CUgraphExec exec, other;
	CUstream s, s2;
	CUdeviceptr p1;
	CUgraph graph, small;

	child_context();
	s = new_stream();
	s2 = new_stream();
	OK(cuGraphCreate(&graph, 0));
	params = memory(100 * MiB);
	OK(cuGraphAddMemAllocNode(&n1, graph, NULL, 0, &params));
	p1 = params.dptr;
	params.bytesize = 5 * MiB;
	OK(cuGraphAddMemAllocNode(&n2, graph, &n1, 1, &params));
	OK(cuGraphAddMemFreeNode(&n3, graph, &n2, 1, p1));
	OK(cuGraphAddMemFreeNode(&n4, graph, &n3, 1, params.dptr));
	exec = instantiate(graph, 0);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	OK(cuGraphUpload(exec, s));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 128);
	launch(exec, s);
	small = memory_graph(100 * MiB, 0, &p1);
	other = instantiate(small, 0);
	launch(other, s);
	for (int i = 0; i < 20; i++) {
		OK(cuGraphLaunch(exec, s));
		OK(cuGraphLaunch(other, s2));
	}
	OK(cuCtxSynchronize());
	EQUAL(child_kind_mib(MACHINE_GRAPH), 128);
	for (int i = 0; i < 4; i++)
		EQUAL(attribute((CUgraphMem_attribute)i), 128);
	destroy(graph, exec);
	destroy(small, other);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 128);
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	EQUAL(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	EQUAL(cuGraphLaunch(exec, s), CUDA_ERROR_INVALID_VALUE);
}

TEST(allocations_of_a_graph_after_each_other_have_one_address)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = memory(100 * MiB);
	CUgraphNode alloc, first, last;
	CUdeviceptr p, p2;
	CUgraphExec exec;
	CUgraph graph;
	CUstream s;

	child_context();
	s = new_stream();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	p = params.dptr;
	OK(cuGraphAddMemFreeNode(&first, graph, &alloc, 1, p));
	/* which may run before what lies there is freed */
	OK(cuGraphAddMemAllocNode(&alloc, graph, &alloc, 1, &params));
	CHECK(params.dptr != p);
	p2 = params.dptr;
	params.bytesize = 50 * MiB;
	OK(cuGraphAddMemAllocNode(&alloc, graph, &first, 1, &params));
	EQUAL(params.dptr, p);
	OK(cuGraphAddMemFreeNode(&last, graph, &alloc, 1, p));
	params.bytesize = 110 * MiB;
	OK(cuGraphAddMemAllocNode(&alloc, graph, &last, 1, &params));
	CHECK(params.dptr != p && params.dptr != p2);
	exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	launch(exec, s);
	launch(exec, s);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 320);
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(p2));
	OK(cuMemFree_v2(params.dptr));
	destroy(graph, exec);
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 70 * MiB, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuMemAllocAsync(&p2, 70 * MiB, s));
	EQUAL(p2, p);
	OK(cuStreamEndCapture(s, &graph));
	exec = instantiate(graph, 0);
	launch(exec, s);
	OK(cuMemFree_v2(p));
	destroy(graph, exec);
}

TEST(what_a_graph_leaves_allocated_stays_until_it_is_freed_and_trimmed)
{
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph graph;
	CUstream s;

	child_context();
	s = new_stream();
	graph = memory_graph(40 * MiB, 1, &p);
	exec = instantiate(graph, 0);
	EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemsetD8_v2(p, 1, MiB), CUDA_ERROR_INVALID_VALUE);
	launch(exec, s);
	OK(cuMemsetD8_v2(p, 1, 40 * MiB));
	EQUAL(cuGraphLaunch(exec, s), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 64);
	OK(cuMemFree_v2(p));
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 64);
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	launch(exec, s);
	OK(cuMemFreeAsync(p, s));
	OK(cuStreamSynchronize(s));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 64);
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	OK(cuGraphExecDestroy(exec));
	exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	for (int i = 0; i < 3; i++) {
		launch(exec, s);
		EQUAL(child_kind_mib(MACHINE_GRAPH), 64);
	}
	destroy(graph, exec);
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 64);
	OK(cuMemFree_v2(p));
	OK(cuDeviceGraphMemTrim(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
}

TEST(captured_allocations_become_nodes)
{
	CUgraph graph, clone, parent;
	CUgraphNodeType type;
	CUgraphNode nodes[4], node;
	CUdeviceptr p;
	CUgraphExec exec;
	size_t count = 4;
	CUstream s;

	child_context();
	s = new_stream();
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 70 * MiB, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuStreamEndCapture(s, &graph));
	exec = instantiate(graph, 0);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	launch(exec, s);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 96);
	EQUAL(child_kind_mib(MACHINE_POOL), 0);
	OK(cuGraphGetNodes(graph, nodes, &count));
	EQUAL(count, 2);
	CHECK(!nodes[2]);
	OK(cuGraphNodeGetType(nodes[0], &type));
	EQUAL(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	EQUAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphCreate(&parent, 0));
	EQUAL(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
	/* the reserve outlives the context */
	OK(cuDevicePrimaryCtxReset_v2(0));
	child_context();
	EQUAL(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 96);
	destroy(graph, exec);
	OK(cuGraphDestroy(parent));
}

TEST(graphs_that_run_at_the_same_time_have_memory_of_their_own)
{
	CUgraph first, second;
	CUgraphExec e1, e2;
	CUdeviceptr p1, p2;
	CUgraphNode nodes[2];
	size_t count = 2;
	CUstream s, s2;

	child_context();
	s = new_stream();
	s2 = new_stream();
	first = memory_graph(32 * MiB, 0, &p1);
	OK(cuGraphGetNodes(first, nodes, &count));
	add_spin(first, nodes[0], 20 * MS);
	second = memory_graph(32 * MiB, 0, &p2);
	OK(cuGraphGetNodes(second, nodes, &count));
	add_spin(second, nodes[0], 20 * MS);
	e1 = instantiate(first, 0);
	e2 = instantiate(second, 0);
	OK(cuGraphLaunch(e1, s));
	OK(cuGraphLaunch(e2, s));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 32);
	OK(cuDeviceGraphMemTrim(0));
	IN_TIME(child_kind_mib(MACHINE_GRAPH) == 32);
	OK(cuStreamSynchronize(s));
	OK(cuGraphLaunch(e1, s));
	OK(cuGraphLaunch(e2, s2));
	IN_TIME(child_kind_mib(MACHINE_GRAPH) == 64);
	OK(cuCtxSynchronize());
	destroy(first, e1);
	destroy(second, e2);
}

TEST(a_graph_takes_as_long_as_its_longest_path)
{
	CUgraphNode a, b, c, node;
	CUgraph graph, parent;
	CUgraphExec exec;
	uint64_t began;
	CUstream s;

	child_context();
	s = new_stream();
	OK(cuGraphCreate(&graph, 0));
	a = add_spin(graph, NULL, 5 * MS);
	b = add_spin(graph, NULL, 20 * MS);
	c = add_spin(graph, a, 5 * MS);
	OK(cuGraphAddDependencies(graph, &b, &c, 1));
	OK(cuGraphCreate(&parent, 0));
	OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
	add_spin(parent, node, 5 * MS);
	exec = instantiate(parent, 0);
	began = machine_now_ns();
	OK(cuGraphLaunch(exec, s));
	IN_TIME(machine_now_ns() - began < 15 * MS);
	NOT_YET(cuStreamQuery(s));
	OK(cuStreamSynchronize(s));
	CHECK(machine_now_ns() - began >= 30 * MS);
	IN_TIME(machine_now_ns() - began < 60 * MS);
	OK(cuGraphAddDependencies(graph, &c, &a, 1));
	EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	destroy(parent, exec);
	OK(cuGraphDestroy(graph));
}

static void count_up(void *counter)
{
	++*(int *)counter;
}

TEST(a_capture_follows_events_to_other_streams)
{
	uint32_t *host = calloc(1, 4096);
	CUstreamCaptureStatus status;
	CUstream s, s2;
	CUgraphExec exec;
	CUdeviceptr p;
	CUevent fork_event, join_event;
	CUgraph graph;
	size_t count = 0;
	int calls = 0;

	child_context();
	s = new_stream();
	s2 = new_stream();
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuEventCreate(&fork_event, 0));
	OK(cuEventCreate(&join_event, 0));
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemsetD32Async(p, 7, 1024, s));
	OK(cuEventRecord(fork_event, s));
	OK(cuStreamWaitEvent(s2, fork_event, 0));
	OK(cuStreamIsCapturing(s2, &status));
	EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuLaunchKernel(load("empty"), 1, 1, 1, 1, 1, 1, 0, s2, NULL, NULL));
	OK(cuMemcpyDtoHAsync_v2(host, p, 4096, s));
	OK(cuLaunchHostFunc(s, count_up, &calls));
	OK(cuEventRecord(join_event, s2));
	OK(cuStreamWaitEvent(s, join_event, 0));
	OK(cuEventDestroy_v2(fork_event));
	EQUAL(cuStreamEndCapture(s2, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	OK(cuLaunchKernel(load("empty"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamIsCapturing(s2, &status));
	EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphGetNodes(graph, NULL, &count));
	EQUAL(count, 5);
	OK(cuGraphGetEdges(graph, NULL, NULL, &count));
	EQUAL(count, 5);
	EQUAL(host[5], 0);
	exec = instantiate(graph, 0);
	launch(exec, s);
	launch(exec, s);
	EQUAL(host[5], 7);
	EQUAL(calls, 2);
	destroy(graph, exec);
	free(host);
}

TEST(what_cannot_be_captured_ends_the_capture)
{
	CUstreamCaptureStatus status;
	CUstream s, s2;
	CUevent event;
	CUgraph graph;

	child_context();
	s = new_stream();
	s2 = new_stream();
	OK(cuEventCreate(&event, 0));
	EQUAL(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamBeginCapture_v2(s, 0));
	EQUAL(cuStreamBeginCapture_v2(s, 0), CUDA_ERROR_ILLEGAL_STATE);
	EQUAL(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(s, &status));
	EQUAL(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(!graph);
	OK(cuStreamSynchronize(s));
	/* a stream that was not joined back */
	OK(cuStreamBeginCapture_v2(s, 0));
	OK(cuEventRecord(event, s));
	EQUAL(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
	OK(cuStreamWaitEvent(s2, event, 0));
	OK(cuLaunchKernel(load("empty"), 1, 1, 1, 1, 1, 1, 0, s2, NULL, NULL));
	EQUAL(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	OK(cuStreamSynchronize(s2));
}

TEST(five_thousand_nodes_take_the_drivers_own_memory)
{
	CUgraphExec exec[2];
	CUgraph graph;
	CUstream s;

	child_context();
	s = new_stream();
	OK(cuStreamBeginCapture_v2(s, 0));
	for (int i = 0; i < 5000; i++)
		OK(cuLaunchKernel(load("empty"), 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	OK(cuStreamEndCapture(s, &graph));
	exec[0] = instantiate(graph, 0);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 14);
	exec[1] = instantiate(graph, 0);
	EQUAL(child_kind_mib(MACHINE_GRAPH), 26);
	OK(cuGraphExecDestroy(exec[0]));
	OK(cuGraphExecDestroy(exec[1]));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 26);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EQUAL(child_kind_mib(MACHINE_GRAPH), 0);
	OK(cuGraphDestroy(graph));
}

TEST(an_executable_graph_can_be_given_other_work)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, longer, other;
	CUgraphExec exec;
	CUgraphNode node;
	uint64_t began;
	CUstream s;

	child_context();
	s = new_stream();
	OK(cuGraphCreate(&graph, 0));
	node = add_spin(graph, NULL, 1);
	exec = instantiate(graph, 0);
	OK(cuGraphClone(&longer, graph));
	add_spin(longer, NULL, 1);
	EQUAL(cuGraphExecUpdate_v2(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphCreate(&other, 0));
	add_spin(other, NULL, 20 * MS);
	OK(cuGraphExecUpdate_v2(exec, other, &info));
	began = machine_now_ns();
	launch(exec, s);
	CHECK(machine_now_ns() - began >= 20 * MS);
	OK(cuGraphDestroyNode(node));
	EQUAL(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
	destroy(graph, exec);
	OK(cuGraphDestroy(longer));
	OK(cuGraphDestroy(other));
}

TEST(a_copy_node_may_end_in_an_array)
{
	CUDA_ARRAY_DESCRIPTOR descriptor = {
		.Width = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
	char from[64] = "through a graph", back[64] = "";
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = sizeof(from),
		.Height = 1,
		.Depth = 1};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	child_context();
	OK(cuArrayCreate_v2(&copy.dstArray, &descriptor));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
	exec = instantiate(graph, 0);
	launch(exec, new_stream());
	OK(cuMemcpyAtoH_v2(back, copy.dstArray, 0, sizeof(back)));
	EQUAL(strcmp(back, from), 0);
	destroy(graph, exec);
	OK(cuArrayDestroy(copy.dstArray));
}

static CUkernel library_kernel(void)
{
	CUlibrary library;
	CUkernel kernel;

	OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "empty"));
	return kernel;
}

TEST(the_function_of_a_node_is_no_librarys_kernel)
{
	CUstream stream;
	CUgraph graph;
	CUgraphNode node;
	CUkernel kernel;
	CUgraphExec exec;
	CUDA_KERNEL_NODE_PARAMS_v2 params = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};

	child_context();
	kernel = library_kernel();
	stream = new_stream();
	OK(cuGraphCreate(&graph, 0));
	params.func = (CUfunction)kernel;
	EQUAL(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_HANDLE);
	OK(cuKernelGetFunction(&params.func, kernel));
	CHECK((void *)params.func != (void *)kernel);
	OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	params.func = NULL;
	params.kern = kernel;
	OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	OK(cuGraphDestroy(graph));
	/* A launch takes it in a function's place, in a capture, too. */
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuStreamEndCapture(stream, &graph));
	exec = instantiate(graph, 0);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* The bodies of a conditional node of the graph. */
static CUgraph *add_conditional(
	CUgraph graph, CUgraphConditionalNodeType type, unsigned int size, unsigned int value)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = {.type = type, .size = size}};
	CUgraphNode node;

	OK(cuCtxGetCurrent(&params.conditional.ctx));
	OK(cuGraphConditionalHandleCreate(
		&params.conditional.handle, graph, params.conditional.ctx, value, 1));
	OK(cuGraphAddNode(&node, graph, NULL, 0, &params));
	return params.conditional.phGraph_out;
}

static uint64_t run_ns(CUgraph graph)
{
	CUgraphExec exec = instantiate(graph, 0);
	uint64_t began = machine_now_ns();

	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	began = machine_now_ns() - began;
	OK(cuGraphExecDestroy(exec));
	return began;
}

TEST(a_conditional_node_runs_as_often_as_its_value_says)
{
	CUgraph graph, clone, *bodies;
	uint64_t took;

	child_context();
	OK(cuGraphCreate(&graph, 0));
	bodies = add_conditional(graph, CU_GRAPH_COND_TYPE_WHILE, 1, 4);
	add_spin(bodies[0], add_spin(bodies[0], NULL, 5 * MS), 5 * MS);
	EQUAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	EQUAL(cuGraphDestroy(bodies[0]), CUDA_ERROR_INVALID_VALUE);
	took = run_ns(graph);
	IN_TIME(took >= 40 * MS && took < 80 * MS);
	OK(cuGraphDestroy(graph));
	OK(cuGraphCreate(&graph, 0));
	bodies = add_conditional(graph, CU_GRAPH_COND_TYPE_IF, 2, 0);
	add_spin(bodies[0], NULL, 500 * MS);
	add_spin(bodies[1], NULL, 10 * MS);
	took = run_ns(graph);
	IN_TIME(took >= 10 * MS && took < 200 * MS);
	bodies = add_conditional(bodies[1], CU_GRAPH_COND_TYPE_SWITCH, 3, 2);
	add_spin(bodies[1], NULL, 500 * MS);
	add_spin(bodies[2], NULL, 30 * MS);
	took = run_ns(graph);
	IN_TIME(took >= 30 * MS && took < 300 * MS);
	OK(cuGraphDestroy(graph));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_of_a_node_is_no_librarys_kernel),
		cmocka_unit_test(a_conditional_node_runs_as_often_as_its_value_says),
		cmocka_unit_test(memory_is_taken_at_upload_in_steps_and_given_back_by_a_trim),
		cmocka_unit_test(allocations_of_a_graph_after_each_other_have_one_address),
		cmocka_unit_test(what_a_graph_leaves_allocated_stays_until_it_is_freed_and_trimmed),
		cmocka_unit_test(captured_allocations_become_nodes),
		cmocka_unit_test(graphs_that_run_at_the_same_time_have_memory_of_their_own),
		cmocka_unit_test(a_graph_takes_as_long_as_its_longest_path),
		cmocka_unit_test(a_capture_follows_events_to_other_streams),
		cmocka_unit_test(what_cannot_be_captured_ends_the_capture),
		cmocka_unit_test(five_thousand_nodes_take_the_drivers_own_memory),
		cmocka_unit_test(an_executable_graph_can_be_given_other_work),
		cmocka_unit_test(a_copy_node_may_end_in_an_array),
	};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
