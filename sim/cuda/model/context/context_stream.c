/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that a program makes in a context. */
#include <string.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * What the context takes for its stream number n, counted from 1. Measured on an H200, at stream 2,
 * 6, 10 and so on, and at 36, 79, 122 and 164: 54 MiB for 100, 108 MiB for 200.
 */
static uint64_t stream_cost(unsigned int n)
{
	uint64_t steps = (n % 4 == 2 ? 1 : 0) + (n % 43 == 36 ? 1 : 0);

	return steps * driver.board->stream_bytes;
}

CUresult context_count_stream(struct context *context)
{
	CUresult result = CUDA_SUCCESS;

	if (context->streams == context->streams_peak) {
		result = room_keep(context, MACHINE_STREAM, stream_cost(context->streams_peak + 1));
		if (result == CUDA_SUCCESS)
			context->streams_peak++;
	}
	if (result == CUDA_SUCCESS)
		context->streams++;
	return result;
}

void context_uncount_stream(struct context *context)
{
	if (context->streams > 0)
		context->streams--;
}

static CUresult count(struct context *context)
{
	LOCK_SCOPE(&driver.memory_lock);
	return context_count_stream(context);
}

static void uncount(struct context *context)
{
	LOCK_SCOPE(&driver.memory_lock);
	context_uncount_stream(context);
}

CUresult context_new_stream(
	struct context *context, unsigned int flags, int priority, struct stream **ret_stream)
{
	struct stream *stream;
	CUresult result = count(context);

	if (result != CUDA_SUCCESS)
		return result;
	stream = timeline_new_stream(context, flags, priority);
	if (!stream) {
		uncount(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

void context_free_stream(struct stream *stream)
{
	capture_leave(&stream->captured, true);
	uncount(stream->context);
	timeline_free_stream(stream);
}
