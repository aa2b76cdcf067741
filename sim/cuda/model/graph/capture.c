/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what is given to a stream becomes nodes of a graph. */
#include "sim/cuda/model/graph/capture.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * A capture begins on one stream; others join it by waiting for an event that was recorded in it,
 * and must be joined back before it ends. Each of its streams knows the nodes that its next one
 * comes after. All of it is under memory_lock, except asking whether a stream is captured.
 */

struct capture {
	unsigned long long id;
	struct graph *graph;
	bool is_graph_the_programs; /* cuStreamBeginCaptureToGraph */
	bool is_lost;		    /* something was done that cannot be captured */
	struct stream *origin;
	CUstreamCaptureMode mode;
	pthread_t thread;
	uint32_t users; /* streams and events */
};

static unsigned long long next_id = 1;

bool capture_is_on(const struct stream *stream)
{
	return captured_by(&stream->captured);
}

static void leave(struct captured *captured, bool is_lost)
{
	struct capture *capture = captured_by(captured);

	if (!capture)
		return;
	free(captured->tails);
	capture->is_lost |= is_lost;
	captured->tails = NULL;
	captured->tail_count = 0;
	atomic_store_explicit(&captured->capture, NULL, memory_order_relaxed);
	if (--capture->users > 0)
		return;
	if (capture->graph && !capture->is_graph_the_programs)
		graph_free(capture->graph);
	free(capture);
}

static void enter(struct captured *captured, struct capture *capture)
{
	if (captured_by(captured) == capture)
		return;
	leave(captured, false);
	capture->users++;
	atomic_store_explicit(&captured->capture, capture, memory_order_relaxed);
}

/* These nodes, and those that are there already if is_more, are what the next one comes after. */
static bool set_tails(
	struct captured *captured, struct graph_node *const *tails, size_t count, bool is_more)
{
	size_t before = is_more ? captured->tail_count : 0;
	struct graph_node **grown = realloc(captured->tails, (before + count + 1) * sizeof(*grown));

	if (!grown)
		return false;
	if (count > 0)
		memcpy(grown + before, tails, count * sizeof(*tails));
	captured->tails = grown;
	captured->tail_count = before + count;
	return true;
}

/* Whether the stream's capture can go on; the answer for a call where it cannot. */
static CUresult go_on(const struct stream *stream)
{
	const struct capture *capture = captured_by(&stream->captured);

	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	return capture->is_lost ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult add(struct stream *stream, const struct work *work)
{
	struct captured *captured = &stream->captured;
	struct work own = *work;
	struct graph_node *node;
	CUresult result = go_on(stream);

	if (!own.context)
		own.context = stream->context;
	if (result == CUDA_SUCCESS)
		result = graph_add(captured_by(captured)->graph, captured->tails,
			captured->tail_count, &own, &node);
	if (result == CUDA_SUCCESS && !set_tails(captured, &node, 1, false))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

CUresult capture_add(struct stream *stream, const struct work *work)
{
	LOCK_SCOPE(&driver.memory_lock);
	return add(stream, work);
}

CUresult capture_alloc(
	struct stream *stream, struct device *device, size_t bytes, CUdeviceptr *ret_base)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal}},
		.bytesize = bytes};
	struct work work;
	CUresult result = go_on(stream);

	if (result == CUDA_SUCCESS)
		result = work_alloc(&params, &work);
	if (result != CUDA_SUCCESS)
		return result;
	graph_place(captured_by(&stream->captured)->graph, stream->captured.tails,
		stream->captured.tail_count, &work);
	result = add(stream, &work);
	if (result == CUDA_SUCCESS)
		*ret_base = work.alloc.params.dptr;
	else
		work_drop(&work);
	return result;
}

CUresult capture_free(struct stream *stream, CUdeviceptr dptr)
{
	struct work work;
	CUresult result = go_on(stream);

	if (result == CUDA_SUCCESS)
		result = work_free(dptr, &work);
	return result == CUDA_SUCCESS ? add(stream, &work) : result;
}

CUresult capture_forbid(struct stream *stream)
{
	LOCK_SCOPE(&driver.memory_lock);
	if (captured_by(&stream->captured))
		captured_by(&stream->captured)->is_lost = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_record(struct stream *stream, struct event *event)
{
	struct captured *captured = &stream->captured;
	CUresult result;

	LOCK_SCOPE(&driver.memory_lock);
	result = go_on(stream);
	if (result == CUDA_SUCCESS) {
		enter(&event->captured, captured_by(captured));
		if (!set_tails(&event->captured, captured->tails, captured->tail_count, false))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

/* Under memory_lock. */
static CUresult join(struct stream *stream, const struct event *event)
{
	struct captured *captured = &stream->captured;
	struct capture *capture = captured_by(&event->captured);

	if (!capture) {
		captured_by(captured)->is_lost = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (captured_by(captured) && captured_by(captured) != capture) {
		captured_by(captured)->is_lost = capture->is_lost = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (capture->is_lost)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	enter(captured, capture);
	return set_tails(captured, event->captured.tails, event->captured.tail_count, true)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_wait(struct stream *stream, struct event *event)
{
	LOCK_SCOPE(&driver.memory_lock);
	return join(stream, event);
}

void capture_leave(struct captured *captured, bool is_lost)
{
	if (!captured_by(captured))
		return;
	LOCK_SCOPE(&driver.memory_lock);
	leave(captured, is_lost);
}

void capture_clear(struct context *context)
{
	LOCK_SCOPE(&context->device->time_lock);
	for (struct stream *stream = context->timeline.streams; stream; stream = stream->next)
		leave(&stream->captured, true);
	for (struct event *event = context->timeline.events; event; event = event->next)
		leave(&event->captured, true);
}

CUresult capture_begin(struct stream *stream, struct graph *graph, const CUgraphNode *deps,
	size_t count, CUstreamCaptureMode mode)
{
	struct capture *capture;

	if (captured_by(&stream->captured))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct capture){.id = next_id++,
		.graph = graph ? graph : graph_new(),
		.is_graph_the_programs = graph,
		.origin = stream,
		.mode = mode,
		.thread = pthread_self()};
	enter(&stream->captured, capture);
	return set_tails(&stream->captured, (struct graph_node *const *)deps, count, false)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether everything that was captured comes before what the stream's next work comes after. */
static bool are_all_joined(const struct stream *origin)
{
	const struct captured *captured = &origin->captured;
	struct graph *graph = captured_by(captured)->graph;

	/* Nodes of before the capture are none of its business. */
	if (captured_by(captured)->is_graph_the_programs)
		return true;
	for (struct graph_node *node = graph->first; node; node = node->next)
		node->is_marked = false;
	/* A captured node never depends on one that was captured after it. */
	for (size_t i = 0; i < captured->tail_count; i++)
		captured->tails[i]->is_marked = true;
	for (struct graph_node *node = graph->last; node; node = node->prev) {
		if (!node->is_marked)
			return false;
		for (size_t i = 0; i < node->dep_count; i++)
			node->deps[i]->is_marked = true;
	}
	return true;
}

static CUresult take_graph(struct stream *stream, struct graph **ret_graph)
{
	struct capture *capture = captured_by(&stream->captured);
	CUresult result = go_on(stream);

	if (!capture)
		return result;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		!pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (result == CUDA_SUCCESS && !are_all_joined(stream))
		result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (result == CUDA_SUCCESS) {
		*ret_graph = capture->graph;
		capture->graph = NULL;
	}
	return result;
}

/* The other streams of a capture that ends are free again, and so are its events. */
static void let_go(struct context *context, const struct capture *capture)
{
	struct stream *stream;
	struct event *event;

	LOCK_SCOPE(&context->device->time_lock);
	for (stream = context->timeline.streams; stream; stream = stream->next) {
		if (captured_by(&stream->captured) == capture && stream != capture->origin)
			leave(&stream->captured, false);
	}
	for (event = context->timeline.events; event; event = event->next) {
		if (captured_by(&event->captured) == capture)
			leave(&event->captured, false);
	}
}

CUresult capture_end(struct stream *stream, struct graph **ret_graph)
{
	CUresult result = take_graph(stream, ret_graph);

	if (result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED ||
		result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD || !captured_by(&stream->captured))
		return result;
	for (struct context *context = driver.contexts; context; context = context->next)
		let_go(context, captured_by(&stream->captured));
	leave(&stream->captured, false);
	return result;
}

CUstreamCaptureStatus capture_status(const struct stream *stream)
{
	const struct capture *capture = captured_by(&stream->captured);

	if (!capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return capture->is_lost ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				: CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void capture_describe(const struct stream *stream, const struct capture_info *info)
{
	const struct captured *captured = &stream->captured;
	bool is_active;

	*info->status = capture_status(stream);
	is_active = *info->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (info->id)
		*info->id = is_active ? captured_by(captured)->id : 0;
	if (info->graph)
		*info->graph = is_active ? (CUgraph)captured_by(captured)->graph : NULL;
	if (info->deps)
		*info->deps = is_active ? (const CUgraphNode *)captured->tails : NULL;
	if (info->edges)
		*info->edges = NULL;
	if (info->count)
		*info->count = is_active ? captured->tail_count : 0;
}
