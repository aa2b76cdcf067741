/* SPDX-License-Identifier: Apache-2.0 */
/* The life of contexts, and the stack of each thread. */
#include "sim/cuda/model/context/context.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/memory/share.h"

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

static struct context *contexts; /* under memory_lock */
static unsigned long long next_id = 1;
static unsigned long long last_life;

static void free_thread(void *data)
{
	struct thread *mine = data;

	while (mine->top) {
		struct level *below = mine->top->below;

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

static bool push(struct context *context)
{
	struct level *level = malloc(sizeof(*level));

	if (!level)
		return false;
	if (!thread.top)
		keep_thread();
	level->context = context;
	level->below = thread.top;
	thread.top = level;
	return true;
}

static struct context *pop(void)
{
	struct level *level = thread.top;
	struct context *context;

	if (!level)
		return NULL;
	context = level->context;
	thread.top = level->below;
	free(level);
	return context;
}

bool context_is_alive(const struct context *context)
{
	/* Pairs with the releases in context_activate() and context_end(). */
	return atomic_load_explicit(&context->is_alive, memory_order_acquire) != 0;
}

CUresult context_current(struct context **ret_context)
{
	if (!thread.top || !thread.top->context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_is_alive(thread.top->context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_context = thread.top->context->owner;
	return CUDA_SUCCESS;
}

struct green *context_current_green(void)
{
	return thread.top && thread.top->context && context_is_alive(thread.top->context)
		       ? thread.top->context->green
		       : NULL;
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

struct context *context_first(void)
{
	return contexts;
}

struct stream *context_thread_stream(struct context *context)
{
	struct thread_stream *entry;
	struct stream *stream;

	for (entry = thread.streams; entry; entry = entry->next) {
		if (entry->context == context)
			break;
	}
	if (entry && timeline_find(context, (CUstream)entry->stream, false) &&
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

CUresult context_stream(
	CUstream handle, bool is_thread, struct context **ret_context, struct stream **ret_stream)
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	stream = timeline_find(context, handle, is_thread);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_context = stream->context;
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

struct context *context_make(struct device *device, bool is_primary)
{
	struct context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->magic = CONTEXT_MAGIC;
	context->is_primary = is_primary;
	context->device = device;
	context->owner = context;
	context->api_version = 3020;
	context->id = next_id++;
	context->next = contexts;
	contexts = context;
	return context;
}

CUresult context_activate(struct context *context, unsigned int flags)
{
	/* Measured on an H200, but the last two. */
	static const size_t limits[CONTEXT_LIMITS] = {
		[CU_LIMIT_STACK_SIZE] = CONTEXT_FIRST_FRAME_BYTES,
		[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752,
		[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
		[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
		[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
		[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
		[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0,
	};
	struct device *device = context->device;
	uint64_t bytes[MACHINE_KINDS_USED] = {0};

	bytes[MACHINE_CONTEXT] = driver.board->context_bytes;
	bytes[MACHINE_CONTEXT_EXTRA] = driver.board->context_extra_bytes;
	if (machine_grow_kinds(driver.machine, device->index, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->flags = flags;
	context->life = ++last_life;
	context->code = (struct context_code){0};
	context->attached = 0;
	context->streams = 0;
	context->streams_peak = 0;
	for (int i = 0; i < CONTEXT_LIMITS; i++)
		context_set_limit(context, (CUlimit)i, limits[i]);
	timeline_init(context);
	machine_set_contexts(driver.machine, device->index, ++device->contexts);
	/* Pairs with the acquire in context_is_alive(). */
	atomic_store_explicit(&context->is_alive, 1, memory_order_release);
	return CUDA_SUCCESS;
}

void context_end(struct context *context)
{
	struct device *device = context->device;

	/* Pairs with the acquire in context_is_alive(). */
	atomic_store_explicit(&context->is_alive, 0, memory_order_release);
	for (struct context *green = contexts; green; green = green->next) {
		if (green->owner == context && green != context)
			/* Pairs with the acquire in context_is_alive(). */
			atomic_store_explicit(&green->is_alive, 0, memory_order_release);
	}
	timeline_clear(context);
	module_clear(context);
	array_clear(context);
	heap_clear(context);
	share_clear(context);
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		context_let_go(context, (enum machine_kind)kind, context->kept_bytes[kind]);
	graph_memory_clear(context);
	context->graph_bytes = 0;
	context->graph_code_bytes = 0;
	machine_set_contexts(driver.machine, device->index, --device->contexts);
	machine_shrink(driver.machine, device->index, MACHINE_CONTEXT, driver.board->context_bytes);
	machine_shrink(driver.machine, device->index, MACHINE_CONTEXT_EXTRA,
		driver.board->context_extra_bytes);
}

bool context_are_flags_valid(unsigned int flags)
{
	unsigned int schedule = flags & CU_CTX_SCHED_MASK;

	return (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0 &&
	       (schedule == 0 || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
		       schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

static CUresult create(
	CUcontext *ret_context, unsigned int flags, CUdevice ordinal, unsigned int api_version)
{
	struct device *device = driver_device(ordinal);
	struct context *context;
	CUresult result;

	if (!ret_context || !context_are_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&driver.memory_lock);
	context = context_make(device, false);
	result = context ? context_activate(context, flags) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		context->api_version = api_version;
		if (!push(context)) {
			context_end(context);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			*ret_context = (CUcontext)context;
		}
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	(context, flags, ordinal))
{
	return create(context, flags, ordinal, 3010);
}

ENTRY_BODY(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	(context, flags, ordinal))
{
	return create(context, flags, ordinal, 3020);
}

ENTRY_BODY(cuCtxCreate_v3,
	(CUcontext * context, CUexecAffinityParam *params, int count, unsigned int flags,
		CUdevice ordinal),
	(context, params, count, flags, ordinal))
{
	if (count < 0 || (count > 0 && !params))
		return CUDA_ERROR_INVALID_VALUE;
	/* Shares of multiprocessors exist under MPS only, which is not simulated. */
	if (count > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(context, flags, ordinal, 3020);
}

ENTRY_BODY(cuCtxCreate_v4,
	(CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice ordinal),
	(context, params, flags, ordinal))
{
	if (params && (params->numExecAffinityParams > 0 || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(context, flags, ordinal, 3020);
}

static CUresult destroy(CUcontext handle)
{
	struct context *context;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	result = context_check_itself(handle, &context);
	if (result == CUDA_SUCCESS && (context->is_primary || context->green))
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS) {
		context_end(context);
		if (thread.top && thread.top->context == context)
			pop();
	}
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_BODY(cuCtxDestroy, (CUcontext context), (context))
{
	return destroy(context);
}

ENTRY_BODY(cuCtxDestroy_v2, (CUcontext context), (context))
{
	return destroy(context);
}

/* Uses beyond that of its creator are counted; the last one that goes destroys the context. */
ENTRY_BODY(cuCtxAttach, (CUcontext * context, unsigned int flags), (context, flags))
{
	struct context *current;
	CUresult result = context_check_itself(NULL, &current);

	if (!context || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver.memory_lock);
	current->attached++;
	pthread_mutex_unlock(&driver.memory_lock);
	*context = (CUcontext)current;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxDetach, (CUcontext handle), (handle))
{
	struct context *context;
	bool is_last = false;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_check_itself(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Only where it is current. */
	if (!thread.top || thread.top->context != context)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&driver.memory_lock);
	if (context->attached > 0)
		context->attached--;
	else
		is_last = true;
	pthread_mutex_unlock(&driver.memory_lock);
	return is_last ? destroy(handle) : CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxGetCurrent, (CUcontext * context), (context))
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = thread.top ? (CUcontext)thread.top->context : NULL;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxSetCurrent, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result;

	if (!handle) {
		pop();
		return CUDA_SUCCESS;
	}
	result = context_check_itself(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (thread.top)
		thread.top->context = context;
	else if (!push(context))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult push_handle(CUcontext handle)
{
	struct context *context;
	CUresult result;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_check_itself(handle, &context);
	if (result == CUDA_SUCCESS && !push(context))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

static CUresult pop_handle(CUcontext *ret_context)
{
	struct context *context;

	if (!thread.top)
		return CUDA_ERROR_INVALID_CONTEXT;
	context = pop();
	if (ret_context)
		*ret_context = (CUcontext)context;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxPushCurrent, (CUcontext context), (context))
{
	return push_handle(context);
}

ENTRY_BODY(cuCtxPushCurrent_v2, (CUcontext context), (context))
{
	return push_handle(context);
}

ENTRY_BODY(cuCtxPopCurrent, (CUcontext * context), (context))
{
	return pop_handle(context);
}

ENTRY_BODY(cuCtxPopCurrent_v2, (CUcontext * context), (context))
{
	return pop_handle(context);
}
