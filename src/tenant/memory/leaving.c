/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins that were freed in stream order. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/leaving.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"

struct leaving {
	struct leaving *next;
	struct allocation allocation;
	CUcontext context; /* the stream's, in which the event is */
	CUevent event;	   /* NULL: its context has ended, and so has all that was before it */
};

static struct lock list_lock; /* held for the list alone, never while the driver is asked */
static struct leaving *list;
static _Atomic uint32_t count; /* of those in the list, and those taken out to be looked at */

static CUcontext context_of(CUstream stream)
{
	CUcontext context = NULL;

	/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are streams of the current context. */
	if ((uintptr_t)stream > 2 && cuda.cuStreamGetCtx &&
		cuda.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS)
		return context;
	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	return context;
}

/* The event, recorded on the stream; l->context is current. */
static CUresult mark(struct leaving *l, CUstream stream)
{
	CUresult r = cuda.cuEventCreate(&l->event, CU_EVENT_DISABLE_TIMING);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuEventRecord(l->event, stream);
	if (r != CUDA_SUCCESS)
		cuda.cuEventDestroy_v2(l->event);
	return r;
}

static CUresult mark_in_context(struct leaving *l, CUstream stream)
{
	CUcontext popped;
	CUresult r;

	if (!cuda.cuEventCreate || !cuda.cuEventRecord || !cuda.cuEventQuery ||
		!cuda.cuEventDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = cuda.cuCtxPushCurrent_v2(l->context);
	if (r != CUDA_SUCCESS)
		return r;
	r = mark(l, stream);
	cuda.cuCtxPopCurrent_v2(&popped);
	return r;
}

static void put_in(struct leaving *l)
{
	LOCK_SCOPE(&list_lock);

	FAULT("leaving: locked");
	l->next = list;
	list = l;
}

CUresult leaving_add(const struct allocation *allocation, CUstream stream)
{
	struct leaving *l = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*l));
	CUresult r;

	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->allocation = *allocation;
	l->context = context_of(stream);
	r = mark_in_context(l, stream);
	if (r != CUDA_SUCCESS) {
		free(l);
		return r;
	}
	atomic_fetch_add(&count, 1);
	put_in(l);
	return CUDA_SUCCESS;
}

static bool is_passed(const struct leaving *l)
{
	return !l->event || cuda.cuEventQuery(l->event) == CUDA_SUCCESS;
}

/* Whether it is freed; not yet where the stream has not come so far, or the driver will not. */
static bool let_go(const struct leaving *l)
{
	CUcontext popped;
	bool is_freed;

	if (cuda.cuCtxPushCurrent_v2(l->context) != CUDA_SUCCESS)
		return false;
	is_freed = is_passed(l) && cuda.cuMemFree_v2(l->allocation.pointer) == CUDA_SUCCESS;
	if (is_freed && l->event)
		cuda.cuEventDestroy_v2(l->event);
	cuda.cuCtxPopCurrent_v2(&popped);
	FAULT("leaving: the driver freed");
	if (is_freed)
		allocations_give_back(&l->allocation);
	return is_freed;
}

static struct leaving *take_all(void)
{
	LOCK_SCOPE(&list_lock);
	struct leaving *all = list;

	list = NULL;
	return all;
}

void leaving_collect(void)
{
	struct leaving *l, *next;

	if (LIKELY(!leaving_is_any()))
		return;
	for (l = take_all(); l; l = next) {
		next = l->next;
		if (!let_go(l)) {
			put_in(l);
			continue;
		}
		free(l);
		atomic_fetch_sub(&count, 1);
	}
}

void leaving_settle(struct device *device)
{
	leaving_collect();
}

bool leaving_is_any(void)
{
	/* relaxed: one that is not seen yet was not ordered before this look */
	return atomic_load_explicit(&count, memory_order_relaxed) > 0;
}

void leaving_context_ended(struct device *device, CUcontext context)
{
	struct leaving *l, *next;

	if (!leaving_is_any())
		return;
	for (l = take_all(); l; l = next) {
		next = l->next;
		if (allocations_context(&l->allocation) == context) {
			allocations_give_back(&l->allocation);
			free(l);
			atomic_fetch_sub(&count, 1);
			continue;
		}
		if (l->context == context) {
			l->event = NULL;
			l->context = allocations_context(&l->allocation);
		}
		put_in(l);
	}
}

void leaving_reset_after_fork(void)
{
	struct leaving *l = list, *next;

	list_lock = (struct lock)LOCK_INIT;
	list = NULL;
	atomic_store(&count, 0);
	for (; l; l = next) {
		next = l->next;
		free(l);
	}
}
