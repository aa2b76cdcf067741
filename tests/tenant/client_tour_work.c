/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of the tour: arrays, graphs, code, launches, limits, streams and green contexts. */
#include <stdio.h>

#include "tests/tenant/client_tour.h"

#define HEADER "\n.version 7.0\n.target sm_70\n.address_size 64\n"
#define TILE   128u

static CUresult end_array(const struct tour *t, uint64_t array, uint64_t more)
{
	return t->cu->cuArrayDestroy((CUarray)(uintptr_t)array);
}

static CUresult end_mipmap(const struct tour *t, uint64_t mipmap, uint64_t more)
{
	return t->cu->cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)mipmap);
}

static CUresult release(const struct tour *t, uint64_t handle, uint64_t more)
{
	return t->cu->cuMemRelease(handle);
}

static CUresult unload(const struct tour *t, uint64_t module, uint64_t more)
{
	return t->cu->cuModuleUnload((CUmodule)(uintptr_t)module);
}

static CUresult unload_library(const struct tour *t, uint64_t library, uint64_t more)
{
	return t->cu->cuLibraryUnload((CUlibrary)(uintptr_t)library);
}

static CUresult limit_stack(const struct tour *t, uint64_t bytes, uint64_t more)
{
	return t->cu->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes);
}

static CUresult end_graph(const struct tour *t, uint64_t graph, uint64_t more)
{
	return t->cu->cuGraphDestroy((CUgraph)(uintptr_t)graph);
}

static CUresult end_exec(const struct tour *t, uint64_t exec, uint64_t more)
{
	return t->cu->cuGraphExecDestroy((CUgraphExec)(uintptr_t)exec);
}

static CUresult free_plain(const struct tour *t, uint64_t pointer, uint64_t more)
{
	return t->cu->cuMemFree_v2(pointer);
}

static CUresult trim(const struct tour *t, uint64_t ordinal, uint64_t more)
{
	return t->cu->cuDeviceGraphMemTrim((CUdevice)ordinal);
}

static CUresult end_capture(const struct tour *t, uint64_t stream, uint64_t graph)
{
	return t->cu->cuStreamEndCapture((CUstream)(uintptr_t)stream, (CUgraph *)(uintptr_t)graph);
}

static CUresult end_stream(const struct tour *t, uint64_t stream, uint64_t more)
{
	return t->cu->cuStreamDestroy_v2((CUstream)(uintptr_t)stream);
}

static CUresult use_own_context(const struct tour *t, uint64_t value, uint64_t more)
{
	return t->cu->cuCtxSetCurrent(t->context);
}

static CUresult end_green(const struct tour *t, uint64_t green, uint64_t more)
{
	cuGreenCtxDestroy_fn *destroy = (cuGreenCtxDestroy_fn *)client_find("cuGreenCtxDestroy");

	return destroy((CUgreenCtx)(uintptr_t)green);
}

/* Two that share a chunk, one with chunks of its own, and one with levels. */
static void arrays(struct tour *t)
{
	static const size_t sides[] = {100, 90, 1000};
	CUDA_ARRAY3D_DESCRIPTOR d = {.Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUmipmappedArray mipmap;
	CUarray array[3] = {NULL};

	for (unsigned i = 0; i < 3; i++) {
		d.Width = d.Height = sides[i];
		if (!tour_went_well(t, t->cu->cuArray3DCreate_v2(&array[i], &d)))
			array[i] = NULL;
	}
	if (tour_went_well(t, t->cu->cuMipmappedArrayCreate(&mipmap, &d, 4)))
		tour_give(t, end_mipmap, (uintptr_t)mipmap, 0);
	for (unsigned i = 0; i < 3; i++)
		if (array[i])
			tour_give(t, end_array, (uintptr_t)array[i], 0);
}

static void map_tile(struct tour *t, CUarray array, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.deviceBitMask = 1u << t->client->device,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP};

	info.resource.array = array;
	info.memHandle.memHandle = handle;
	info.subresource.sparseLevel.extentWidth = TILE;
	info.subresource.sparseLevel.extentHeight = TILE;
	info.subresource.sparseLevel.extentDepth = 1;
	tour_went_well(t, t->cu->cuMemMapArrayAsync(&info, 1, NULL));
}

/* Once unmapped, and once with what is mapped into it. */
static void sparse_array(struct tour *t, bool is_unmapped)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}};
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 4 * TILE,
		.Height = 4 * TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};
	CUmemGenericAllocationHandle handle;
	CUarray array;

	if (!tour_went_well(t, t->cu->cuArray3DCreate_v2(&array, &d)))
		return;
	if (tour_went_well(t, t->cu->cuMemCreate(&handle, 2 * TOUR_MIB, &prop, 0))) {
		map_tile(t, array, handle);
		tour_give(t, release, handle, 0);
		if (is_unmapped)
			map_tile(t, array, 0);
	}
	tour_give(t, end_array, (uintptr_t)array, 0);
}

static void sparse_arrays(struct tour *t)
{
	sparse_array(t, true);
	sparse_array(t, false);
}

/* Loads, and launches twice: the second launch is of a function that is known. */
static void launch_image(struct tour *t, const char *text)
{
	CUfunction function;
	CUmodule module;

	if (!tour_went_well(t, t->cu->cuModuleLoadData(&module, text)))
		return;
	if (tour_went_well(t, t->cu->cuModuleGetFunction(&function, module, "k")))
		for (unsigned i = 0; i < 2; i++)
			tour_went_well(t, t->cu->cuLaunchKernel(
						  function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	tour_give(t, unload, (uintptr_t)module, 0);
}

static void modules(struct tour *t)
{
	launch_image(t, HEADER ".visible .global .align 4 .b8 data[3000000];\n"
			       ".visible .entry k()\n{ ret; }\n");
	launch_image(t,
		HEADER ".visible .entry k()\n{\n\t.local .align 8 .b8 frame[2048];\n\tret;\n}\n");
}

static void libraries(struct tour *t)
{
	const char *text = HEADER ".visible .global .align 4 .b8 data[3000000];\n"
				  ".visible .global .attribute(.managed) .align 4 .b8 m[5000];\n"
				  ".visible .entry k()\n{ ret; }\n";
	/* Without a value, as cuDNN gives it. */
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
	CUfunction function;
	CUlibrary library;
	CUdeviceptr data;
	CUkernel kernel;
	size_t bytes;

	if (!tour_went_well(t,
		    t->cu->cuLibraryLoadData(&library, text, NULL, NULL, 0, &preserved, NULL, 1)))
		return;
	tour_went_well(t, t->cu->cuLibraryGetGlobal(&data, &bytes, library, "data"));
	if (tour_went_well(t, t->cu->cuLibraryGetKernel(&kernel, library, "k")))
		tour_went_well(t, t->cu->cuKernelGetFunction(&function, kernel));
	tour_give(t, unload_library, (uintptr_t)library, 0);
}

/* In the end as it was in the beginning. */
static void stack_limit(struct tour *t)
{
	tour_went_well(t, t->cu->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 3072));
	tour_give(t, limit_stack, 1024, 0);
}

static void run_graph(struct tour *t, CUgraph graph, CUdeviceptr left)
{
	CUgraphExec exec;

	if (!tour_went_well(t, t->cu->cuGraphInstantiateWithFlags(&exec, graph, 0)))
		return;
	if (tour_went_well(t, t->cu->cuGraphLaunch(exec, NULL)) && left)
		tour_give(t, free_plain, left, 0);
	if (!left)
		tour_went_well(t, t->cu->cuGraphLaunch(exec, NULL));
	tour_give(t, end_exec, (uintptr_t)exec, 0);
}

/* One graph frees what it allocates, another leaves it. */
static void graph_with_nodes(struct tour *t, bool is_balanced)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = t->client->device}},
		.bytesize = 5 * TOUR_MIB};
	CUgraphNode first, second;
	CUgraph graph;

	if (!tour_went_well(t, t->cu->cuGraphCreate(&graph, 0)))
		return;
	if (tour_went_well(t, t->cu->cuGraphAddMemAllocNode(&first, graph, NULL, 0, &params))) {
		if (!is_balanced)
			run_graph(t, graph, params.dptr);
		else if (tour_went_well(t, t->cu->cuGraphAddMemFreeNode(
						   &second, graph, &first, 1, params.dptr)))
			run_graph(t, graph, 0);
	}
	tour_give(t, end_graph, (uintptr_t)graph, 0);
}

static void captured_graph(struct tour *t)
{
	CUgraph graph = NULL;
	CUdeviceptr p = 0;
	CUstream stream;

	if (!tour_went_well(t, t->cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
		return;
	if (tour_went_well(t,
		    t->cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))) {
		if (!tour_went_well(t, t->cu->cuMemAllocAsync(&p, 5 * TOUR_MIB, stream)))
			p = 0;
		tour_give(t, end_capture, (uintptr_t)stream, (uintptr_t)&graph);
	}
	if (graph && p)
		run_graph(t, graph, p);
	if (graph)
		tour_give(t, end_graph, (uintptr_t)graph, 0);
	tour_give(t, end_stream, (uintptr_t)stream, 0);
}

static void graphs(struct tour *t)
{
	graph_with_nodes(t, true);
	graph_with_nodes(t, false);
	captured_graph(t);
	tour_give(t, trim, (uint64_t)t->client->device, 0);
}

static CUresult describe(const struct tour *t, CUdevResourceDesc *ret_description)
{
	cuDeviceGetDevResource_fn *ask =
		(cuDeviceGetDevResource_fn *)client_find("cuDeviceGetDevResource");
	cuDevResourceGenerateDesc_fn *generate =
		(cuDevResourceGenerateDesc_fn *)client_find("cuDevResourceGenerateDesc");
	CUdevResource all;
	CUresult r = ask(t->client->device, &all, CU_DEV_RESOURCE_TYPE_SM);

	return r == CUDA_SUCCESS ? generate(ret_description, &all, 1) : r;
}

static void work_in(struct tour *t, CUgreenCtx green)
{
	cuGreenCtxStreamCreate_fn *make_stream =
		(cuGreenCtxStreamCreate_fn *)client_find("cuGreenCtxStreamCreate");
	cuCtxFromGreenCtx_fn *convert = (cuCtxFromGreenCtx_fn *)client_find("cuCtxFromGreenCtx");
	CUcontext context;
	CUstream stream;
	CUdeviceptr p;

	if (tour_went_well(t, make_stream(&stream, green, CU_STREAM_NON_BLOCKING, 0)))
		tour_give(t, end_stream, (uintptr_t)stream, 0);
	if (!tour_went_well(t, convert(&context, green)) ||
		!tour_went_well(t, t->cu->cuCtxSetCurrent(context)))
		return;
	if (tour_went_well(t, t->cu->cuMemAlloc_v2(&p, 3 * TOUR_MIB)))
		tour_give(t, free_plain, p, 0);
	tour_give(t, use_own_context, 0, 0);
}

static void green_context(struct tour *t)
{
	cuGreenCtxCreate_fn *create = (cuGreenCtxCreate_fn *)client_find("cuGreenCtxCreate");
	CUdevResourceDesc description;
	CUgreenCtx green;

	if (!tour_went_well(t, describe(t, &description)) ||
		!tour_went_well(t, create(&green, description, t->client->device,
					   CU_GREEN_CTX_DEFAULT_STREAM)))
		return;
	work_in(t, green);
	tour_give(t, end_green, (uintptr_t)green, 0);
}

static void spin(struct tour *t, CUfunction function, CUstream stream)
{
	uint64_t duration_ns = 300000;
	void *params[] = {&duration_ns};

	for (unsigned i = 0; i < 10; i++)
		tour_went_well(t,
			t->cu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* More than the slice may have at once, on a stream that is destroyed at work, and on the context's own. */
static void limited_work(struct tour *t)
{
	CUfunction function;
	CUmodule module;
	CUstream stream;

	if (!tour_went_well(
		    t, t->cu->cuModuleLoadData(&module,
			       HEADER ".visible .entry spin(.param .u64 duration_ns)\n{ ret; }\n")))
		return;
	if (tour_went_well(t, t->cu->cuModuleGetFunction(&function, module, "spin")) &&
		tour_went_well(t, t->cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) {
		spin(t, function, stream);
		spin(t, function, NULL);
		tour_went_well(t, t->cu->cuStreamSynchronize(stream));
		spin(t, function, stream);
		tour_give(t, end_stream, (uintptr_t)stream, 0);
	}
	tour_went_well(t, t->cu->cuCtxSynchronize());
	tour_give(t, unload, (uintptr_t)module, 0);
}

tour_way_fn *const tour_work_ways[] = {arrays, sparse_arrays, modules, libraries, stack_limit,
	graphs, green_context, limited_work, NULL};
