/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of contexts of each thread, and its default streams. */
#include "sim/cuda/model/context/context.h"

#include <stdlib.h>

#include "sim/cuda/model/context/green.h"
#include "sim/cuda/model/time/timeline.h"

/* One level of a thread's stack of contexts. */
struct level {
	struct context *context;
	struct level *below;
};

/* The default stream of a thread in one context. */
struct thread_stream {
	struct context *context;
	struct stream *stream;
	unsigned long long id; /* the stream may be gone with its context, and be another's now */
	struct thread_stream *next;
};

struct thread {
	struct level *top;
	struct thread_stream *streams;
};

static _Thread_local struct thread thread __attribute__((tls_model("initial-exec")));

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

/* Relaxed: both are counts, for the making of contexts alone. */
static void stand(struct context *context)
{
	if (context)
		atomic_fetch_add_explicit(&context->levels, 1, memory_order_relaxed);
}

static void leave(struct context *context)
{
	if (context)
		atomic_fetch_sub_explicit(&context->levels, 1, memory_order_relaxed);
}

static void free_thread(void *data)
{
	struct thread *mine = data;

	while (mine->top) {
		struct level *below = mine->top->below;

		leave(mine->top->context);
		free(mine->top);
		mine->top = below;
	}
	while (mine->streams) {
		struct thread_stream *next = mine->streams->next;

		free(mine->streams);
		mine->streams = next;
	}
}

static void make_thread_key(void)
{
	pthread_key_create(&thread_key, free_thread);
}

/* So that free_thread() runs when the thread ends. */
static void keep_thread(void)
{
	pthread_once(&thread_once, make_thread_key);
	pthread_setspecific(thread_key, &thread);
}

bool context_push(struct context *context)
{
	struct level *level = malloc(sizeof(*level));

	if (!level)
		return false;
	if (!thread.top)
		keep_thread();
	stand(context);
	level->context = context;
	level->below = thread.top;
	thread.top = level;
	return true;
}

struct context *context_pop(void)
{
	struct level *level = thread.top;
	struct context *context;

	if (!level)
		return NULL;
	context = level->context;
	thread.top = level->below;
	leave(context);
	free(level);
	return context;
}

struct context *context_top(void)
{
	return thread.top ? thread.top->context : NULL;
}

bool context_set_top(struct context *context)
{
	if (!thread.top)
		return context_push(context);
	stand(context);
	leave(thread.top->context);
	thread.top->context = context;
	return true;
}

CUresult context_current(struct context **ret_context)
{
	struct context *top = context_top();

	if (!top)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_is_alive(top))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_context = top->owner;
	return context_fault(top->owner);
}

struct green *context_current_green(void)
{
	struct context *top = context_top();

	return top && context_is_alive(top) ? top->green : NULL;
}

CUresult context_check_itself(CUcontext handle, struct context **ret_context)
{
	struct context *context = (struct context *)handle;

	if (!handle) {
		CUresult result = context_current(ret_context);

		if (result == CUDA_SUCCESS)
			*ret_context = thread.top->context;
		return result;
	}
	if (context->magic != CONTEXT_MAGIC)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_is_alive(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult context_check(CUcontext handle, struct context **ret_context)
{
	CUresult result = context_check_itself(handle, ret_context);

	if (result == CUDA_SUCCESS)
		*ret_context = (*ret_context)->owner;
	return result;
}

static struct stream *thread_stream(struct context *context)
{
	struct thread_stream *entry;
	struct stream *stream;

	for (entry = thread.streams; entry; entry = entry->next) {
		if (entry->context == context)
			break;
	}
	if (entry && timeline_check_stream((CUstream)entry->stream) &&
		entry->stream->id == entry->id)
		return entry->stream;
	stream = timeline_new_stream(context, 0, 0);
	if (!stream)
		return NULL;
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return NULL;
		keep_thread();
		entry->context = context;
		entry->next = thread.streams;
		thread.streams = entry;
	}
	entry->stream = stream;
	entry->id = stream->id;
	return stream;
}

/* NULL for a handle of no stream. */
static struct stream *find_stream(struct context *context, CUstream handle, bool is_thread)
{
	if (handle == CU_STREAM_PER_THREAD || (!handle && is_thread))
		return thread_stream(context);
	if (!handle || handle == CU_STREAM_LEGACY)
		return &context->timeline.legacy;
	return timeline_check_stream(handle);
}

CUresult context_stream(CUstream handle, bool is_thread, struct stream **ret_stream)
{
	struct context *context;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_stream = find_stream(context, handle, is_thread);
	return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
