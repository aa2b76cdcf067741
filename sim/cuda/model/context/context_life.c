/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a context: made once, then brought to life and ended. */
#include <stdlib.h>

#include "sim/cuda/model/code/module.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/graph_memory.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/ipc.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/callback.h"
#include "sim/cuda/model/time/timeline.h"

static unsigned long long next_id = 1;
static unsigned long long last_life;

/* Those that have ended, the last one first. */
static struct context *spare;

void context_spare(struct context *context)
{
	context->next_spare = spare;
	spare = context;
}

/* One that is current nowhere, or a new one. */
static struct context *take(void)
{
	struct context **link = &spare, *context;

	/* Relaxed: who makes a context current that has ended uses its handle too late. */
	while (*link && atomic_load_explicit(&(*link)->levels, memory_order_relaxed) > 0)
		link = &(*link)->next_spare;
	context = *link;
	if (context) {
		*link = context->next_spare;
		*context = (struct context){.next = context->next};
		return context;
	}
	context = calloc(1, sizeof(*context));
	if (context) {
		context->next = driver.contexts;
		driver.contexts = context;
	}
	return context;
}

struct context *context_make(struct device *device, bool is_primary)
{
	struct context *context = take();

	if (!context)
		return NULL;
	context->magic = CONTEXT_MAGIC;
	context->is_primary = is_primary;
	context->device = device;
	context->owner = context;
	context->api_version = 3020;
	context->id = next_id++;
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

	if (presence_is_lost(driver.machine, device->index) || presence_is_stopped(driver.machine))
		return CUDA_ERROR_UNKNOWN;
	bytes[MACHINE_CONTEXT] = driver.board->context_bytes;
	bytes[MACHINE_CONTEXT_EXTRA] = driver.board->context_extra_bytes;
	if (machine_grow_kinds(driver.machine, device->index, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->flags = flags;
	context->life = ++last_life;
	context->code = (struct context_code){0};
	context->attached = 0;
	/* Relaxed: see context_fault(). */
	atomic_store_explicit(&context->fault, CUDA_SUCCESS, memory_order_relaxed);
	context->streams = 0;
	context->streams_peak = 0;
	for (int i = 0; i < CONTEXT_LIMITS; i++)
		context_set_limit(context, (CUlimit)i, limits[i]);
	timeline_init(context);
	/* Relaxed: driver_check_lost() says why. */
	if (!device->contexts)
		atomic_store_explicit(&device->losses,
			presence_losses(driver.machine, device->index) + 1, memory_order_relaxed);
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
	for (struct context *green = driver.contexts; green; green = green->next) {
		if (green->owner == context && green != context)
			/* Pairs with the acquire in context_is_alive(). */
			atomic_store_explicit(&green->is_alive, 0, memory_order_release);
	}
	callback_cancel(context);
	capture_clear(context);
	timeline_clear(context);
	module_clear(context);
	array_clear(context);
	heap_clear(context);
	ipc_clear(context);
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		room_let_go(context, (enum machine_kind)kind, context->kept_bytes[kind]);
	graph_memory_clear(context);
	context->graph_bytes = 0;
	context->graph_code_bytes = 0;
	machine_set_contexts(driver.machine, device->index, --device->contexts);
	/* Relaxed: as above. */
	if (!device->contexts)
		atomic_store_explicit(&device->losses, 0, memory_order_relaxed);
	machine_shrink(driver.machine, device->index, MACHINE_CONTEXT, driver.board->context_bytes);
	machine_shrink(driver.machine, device->index, MACHINE_CONTEXT_EXTRA,
		driver.board->context_extra_bytes);
	if (!context->is_primary)
		context_spare(context);
}

bool context_are_flags_valid(unsigned int flags)
{
	unsigned int schedule = flags & CU_CTX_SCHED_MASK;

	return (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0 &&
	       (schedule == 0 || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
		       schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}
