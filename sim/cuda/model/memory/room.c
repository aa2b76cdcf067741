/* SPDX-License-Identifier: Apache-2.0 */
/* What a context keeps beside allocations: room for frames, streams, what stays until it ends. */
#include "sim/cuda/model/context/context.h"

CUresult context_keep(struct context *context, enum machine_kind kind, uint64_t bytes)
{
	if (bytes == 0)
		return CUDA_SUCCESS;
	if (machine_grow(driver.machine, context->device->index, kind, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->kept_bytes[kind] += bytes;
	return CUDA_SUCCESS;
}

void context_let_go(struct context *context, enum machine_kind kind, uint64_t bytes)
{
	machine_shrink(driver.machine, context->device->index, kind, bytes);
	context->kept_bytes[kind] -= bytes;
}

/* Room for every thread that the device can run at once. */
static uint64_t room_bytes(uint64_t frame_bytes)
{
	uint64_t unit = driver.board->chunk_bytes;
	uint64_t threads =
		(uint64_t)driver.board->sm_count * (uint64_t)driver.board->max_threads_per_sm;

	return (frame_bytes * threads + unit - 1) / unit * unit;
}

/* Under memory_lock. */
static CUresult set_frame(struct context *context, uint64_t frame_bytes)
{
	uint64_t first = room_bytes(CONTEXT_FIRST_FRAME_BYTES);
	uint64_t wanted = room_bytes(frame_bytes);
	uint64_t kept = context->kept_bytes[MACHINE_LOCAL];
	CUresult result = CUDA_SUCCESS;

	wanted = wanted > first ? wanted - first : 0;
	if (wanted > kept)
		result = context_keep(context, MACHINE_LOCAL, wanted - kept);
	else
		context_let_go(context, MACHINE_LOCAL, kept - wanted);
	if (result == CUDA_SUCCESS)
		context_set_limit(context, CU_LIMIT_STACK_SIZE, frame_bytes);
	return result;
}

CUresult context_make_local_room(struct context *context, uint64_t frame_bytes)
{
	CUresult result = CUDA_SUCCESS;

	if (frame_bytes <= context_limit(context, CU_LIMIT_STACK_SIZE))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&driver.memory_lock);
	if (frame_bytes > context_limit(context, CU_LIMIT_STACK_SIZE))
		result = set_frame(context, frame_bytes);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

CUresult context_set_local_room(struct context *context, uint64_t frame_bytes)
{
	CUresult result;

	pthread_mutex_lock(&driver.memory_lock);
	result = set_frame(context, frame_bytes);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

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
		result = context_keep(
			context, MACHINE_STREAM, stream_cost(context->streams_peak + 1));
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

static void uncount(struct context *context)
{
	pthread_mutex_lock(&driver.memory_lock);
	context_uncount_stream(context);
	pthread_mutex_unlock(&driver.memory_lock);
}

CUresult context_new_stream(
	struct context *context, unsigned int flags, int priority, struct stream **ret_stream)
{
	struct stream *stream;
	CUresult result;

	pthread_mutex_lock(&driver.memory_lock);
	result = context_count_stream(context);
	pthread_mutex_unlock(&driver.memory_lock);
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
	uncount(stream->context);
	timeline_free_stream(stream);
}
