/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph will take. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/graph_survey.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/code.h"
#include "tenant/memory/local.h"
#include "tenant/memory/table.h"

/* Graphs in graphs; the driver allows fewer. */
#define DEPTH_MOST 64

static struct table
	bodies; /* key: conditional node; a: its first body; b: how many; or key: body_key(); a: the next one */

static CUresult add_graph(CUgraph graph, struct graph_survey *survey, unsigned depth);

struct graph_place *graph_survey_place(struct graph_survey *survey, CUcontext context)
{
	for (unsigned i = 0; i < survey->place_count; i++)
		if (survey->places[i].context == context)
			return &survey->places[i];
	if (survey->place_count == GRAPH_PLACES)
		return NULL;
	survey->places[survey->place_count] = (struct graph_place){.context = context};
	return &survey->places[survey->place_count++];
}

/* In the place's context. */
static void add_device(struct graph_place *place, struct graph_survey *survey)
{
	CUdevice ordinal = -1;

	if (place->has_device)
		return;
	if (cuda.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS && ordinal >= 0 &&
		ordinal < STATE_ORDINALS)
		survey->devices |= UINT64_C(1) << ordinal;
	else
		survey->devices = GRAPH_ANYWHERE;
	place->has_device = true;
}

/* In the kernel's context. */
static CUresult add_function(
	CUfunction function, struct graph_place *place, struct graph_survey *survey)
{
	bool is_new = !marks_is_launched(function, NULL);
	CUresult r = is_new ? code_prepare(function, NULL) : CUDA_SUCCESS;
	uint64_t frame_bytes = r == CUDA_SUCCESS ? local_frame_bytes(function) : 0;

	add_device(place, survey);
	place->has_new |= is_new;
	if (frame_bytes > place->frame_bytes)
		place->frame_bytes = frame_bytes;
	return r;
}

static CUresult add_kernel_of(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct graph_survey *survey)
{
	CUfunction function = graph_survey_function(params);
	CUcontext current = NULL, popped;
	struct graph_place *place;
	CUresult r;

	survey->content += hash_u64((uintptr_t)function + hash_u64((uintptr_t)params->ctx));
	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&current);
	place = graph_survey_place(survey, params->ctx ? params->ctx : current);
	if (!place) {
		log_error("a graph has kernels in too many contexts, so it is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (place->context == current)
		return add_function(function, place, survey);
	r = cuda.cuCtxPushCurrent_v2(place->context);
	if (r != CUDA_SUCCESS)
		return r;
	r = add_function(function, place, survey);
	cuda.cuCtxPopCurrent_v2(&popped);
	return r;
}

CUresult graph_survey_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct graph_survey *survey)
{
	if (params->func || !params->ctx)
		survey->devices = GRAPH_ANYWHERE;
	return add_kernel_of(params, survey);
}

static CUresult add_kernel(CUgraphNode node, struct graph_survey *survey)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = {.func = NULL};
	CUDA_KERNEL_NODE_PARAMS_v1 old;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (cuda.cuGraphKernelNodeGetParams_v2)
		r = cuda.cuGraphKernelNodeGetParams_v2(node, &params);
	if (r != CUDA_SUCCESS && cuda.cuGraphKernelNodeGetParams) {
		r = cuda.cuGraphKernelNodeGetParams(node, &old);
		params = (CUDA_KERNEL_NODE_PARAMS_v2){.func = old.func};
	}
	if (r != CUDA_SUCCESS)
		return r;
	/* The context that was current when it was added, which is not told. */
	if (!params.ctx)
		survey->devices = GRAPH_ANYWHERE;
	return add_kernel_of(&params, survey);
}

static CUresult add_alloc(CUgraphNode node, struct graph_survey *survey)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	const CUmemLocation *location = &params.poolProps.location;
	struct device *device = NULL;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (cuda.cuGraphMemAllocNodeGetParams)
		r = cuda.cuGraphMemAllocNodeGetParams(node, &params);
	if (r != CUDA_SUCCESS)
		return r;
	survey->content += hash_u64(
		params.bytesize + hash_u64((uint64_t)location->id +
					   hash_u64(params.dptr + (uint64_t)location->type)));
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
		state_meet_device(location->id, &device) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return graph_memory_allocates(&survey->memory, device, params.dptr, params.bytesize)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_free(CUgraphNode node, struct graph_survey *survey)
{
	CUdeviceptr pointer;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (cuda.cuGraphMemFreeNodeGetParams)
		r = cuda.cuGraphMemFreeNodeGetParams(node, &pointer);
	if (r != CUDA_SUCCESS)
		return r;
	return graph_memory_frees(&survey->memory, pointer) ? CUDA_SUCCESS
							    : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_child(CUgraphNode node, struct graph_survey *survey, unsigned depth)
{
	CUresult r = CUDA_ERROR_NOT_FOUND;
	CUgraph child;

	if (cuda.cuGraphChildGraphNodeGetGraph)
		r = cuda.cuGraphChildGraphNodeGetGraph(node, &child);
	return r == CUDA_SUCCESS ? add_graph(child, survey, depth + 1) : r;
}

static uint64_t body_key(uint64_t body)
{
	return body | 1;
}

static CUresult add_bodies(CUgraphNode node, struct graph_survey *survey, unsigned depth)
{
	struct table_entry entry = {.b = 0};
	CUresult r = CUDA_SUCCESS;
	uint64_t count;

	/* Another thread is just adding it, or it came about in a way that we do not know. */
	if (table_get(&bodies, (uintptr_t)node, &entry) != 0) {
		log_error(
			"the bodies of a conditional node are not known, so its graph is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	count = entry.b;
	for (uint64_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
		r = add_graph((CUgraph)(uintptr_t)entry.a, survey, depth + 1);
		if (i + 1 < count && table_get(&bodies, body_key(entry.a), &entry) != 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static CUresult add_node(CUgraphNode node, struct graph_survey *survey, unsigned depth)
{
	CUgraphNodeType type;
	CUresult r = cuda.cuGraphNodeGetType ? cuda.cuGraphNodeGetType(node, &type)
					     : CUDA_ERROR_NOT_FOUND;

	if (r != CUDA_SUCCESS)
		return r;
	survey->node_count++;
	/* Its handle may be another node's that was taken out meanwhile. */
	survey->content += hash_u64((uintptr_t)node + hash_u64((uint64_t)type));
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return add_kernel(node, survey);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return add_alloc(node, survey);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return add_free(node, survey);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_child(node, survey, depth);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return add_bodies(node, survey, depth);
	case CU_GRAPH_NODE_TYPE_HOST:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return CUDA_SUCCESS;
	default:
		/* Of copies and fills the driver does not tell the context. */
		survey->devices = GRAPH_ANYWHERE;
		return CUDA_SUCCESS;
	}
}

static CUresult add_graph(CUgraph graph, struct graph_survey *survey, unsigned depth)
{
	_cleanup_free_ CUgraphNode *nodes = NULL;
	CUresult r = CUDA_ERROR_NOT_FOUND;
	size_t count = 0;

	if (depth > DEPTH_MOST)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (cuda.cuGraphGetNodes)
		r = cuda.cuGraphGetNodes(graph, NULL, &count);
	if (r != CUDA_SUCCESS || count == 0)
		return r;
	nodes = FAULT_OUT_OF_MEMORY() ? NULL : calloc(count, sizeof(CUgraphNode));
	if (!nodes) {
		log_error("no memory to look into a graph, so it is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = cuda.cuGraphGetNodes(graph, nodes, &count);
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		if (nodes[i])
			r = add_node(nodes[i], survey, depth);
	return r;
}

CUresult graph_survey_graph(CUgraph graph, struct graph_survey *survey)
{
	CUresult r = add_graph(graph, survey, 0);

	graph_memory_close(survey->memory);
	return r;
}

CUresult graph_survey_again(CUgraph graph, struct graph_survey *before)
{
	_cleanup_graph_survey_ struct graph_survey now = GRAPH_SURVEY_NULL;
	CUresult r = graph_survey_graph(graph, &now);

	before->devices |= now.devices;
	if (r != CUDA_SUCCESS || now.content == before->content)
		return r;
	log_error("a graph was changed while it was instantiated, so it is refused");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void graph_survey_keep_bodies(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	struct table_entry entry = {.key = (uintptr_t)node, .b = params->size};

	/* The program may write there later. */
	for (unsigned i = 0; params->phGraph_out && i < params->size; i++) {
		entry.a = (uintptr_t)params->phGraph_out[i];
		if (table_put(&bodies, entry) < 0)
			state_on_failure("graph", "no memory");
		entry.key = body_key(entry.a);
	}
}

void graph_survey_end(struct graph_survey *survey)
{
	graph_memory_free(survey->memory);
	survey->memory = NULL;
}

void graph_survey_reset_after_fork(void)
{
	table_forget(&bodies);
}
