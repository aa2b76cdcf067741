/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back when a stream has got there. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/deferred_free.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/contexts.h"

static struct lock list_lock; /* held for the list alone, never while the driver is asked */
static struct deferred_free *list;
static _Atomic uint32_t count; /* of those in the list, and those taken out to be asked for */

/* The event, recorded on the stream; its context is current. */
static CUresult record(struct deferred_free *d, CUstream stream)
{
	CUresult r = cuda.cuEventCreate(&d->event, CU_EVENT_DISABLE_TIMING);

	if (r == CUDA_SUCCESS) {
		r = cuda.cuEventRecord(d->event, stream);
		if (r != CUDA_SUCCESS)
			cuda.cuEventDestroy_v2(d->event);
	}
	if (r != CUDA_SUCCESS)
		d->event = NULL;
	return r;
}

CUresult deferred_free_mark(struct deferred_free *d, CUstream stream)
{
	CUcontext popped;
	CUresult r;

	d->event = NULL;
	d->context = contexts_of_stream(stream);
	d->life = contexts_life_of(d->context);
	if (!cuda.cuEventCreate || !cuda.cuEventRecord || !cuda.cuEventQuery ||
		!cuda.cuEventDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = cuda.cuCtxPushCurrent_v2(d->context);
	if (r != CUDA_SUCCESS)
		return r;
	r = record(d, stream);
	cuda.cuCtxPopCurrent_v2(&popped);
	return r;
}

static void put_in(struct deferred_free *d)
{
	LOCK_SCOPE(&list_lock);

	FAULT("deferred free: locked");
	d->next = list;
	list = d;
}

void deferred_free_add(struct deferred_free *d)
{
	atomic_fetch_add(&count, 1);
	put_in(d);
}

static struct deferred_free *take_all(void)
{
	LOCK_SCOPE(&list_lock);
	struct deferred_free *all = list;

	list = NULL;
	return all;
}

/* A stream of the program that is captured must not notice our question. */
static void poll_event(struct deferred_free *d)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool can_exchange = cuda.cuThreadExchangeStreamCaptureMode &&
			    cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;

	if (d->event && cuda.cuEventQuery(d->event) == CUDA_SUCCESS) {
		cuda.cuEventDestroy_v2(d->event);
		d->event = NULL;
		d->is_passed = true;
	}
	if (can_exchange)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
}

/* Gives back what can be; ended is the life of a context that is just over, or 0. */
static void collect(uint64_t ended)
{
	struct deferred_free *d, *next;

	for (d = take_all(); d; d = next) {
		bool is_gone = ended && d->memory_life == ended;

		next = d->next;
		if (ended && d->life == ended) {
			d->context = NULL;
			d->event = NULL;
			d->is_passed = true;
		}
		if (!d->is_passed && !is_gone)
			poll_event(d);
		if ((d->is_passed || is_gone) && d->give_back(d, is_gone))
			atomic_fetch_sub(&count, 1);
		else
			put_in(d);
	}
}

void deferred_free_collect(void)
{
	if (UNLIKELY(deferred_free_is_any()))
		collect(0);
}

void deferred_free_collect_all(struct device *device)
{
	(void)device;
	deferred_free_collect();
}

void deferred_free_life_ended(struct device *device, uint64_t life)
{
	(void)device;
	if (deferred_free_is_any())
		collect(life);
}

bool deferred_free_is_any(void)
{
	/* relaxed: one that is not seen yet was not ordered before this question */
	return atomic_load_explicit(&count, memory_order_relaxed) > 0;
}

void deferred_free_reset_after_fork(void)
{
	/* What waited is the parent's, and so is the memory of the list. */
	list_lock = (struct lock)LOCK_INIT;
	list = NULL;
	atomic_store(&count, 0);
}

/* A host fallback. */
struct fallback {
	struct deferred_free deferred;
	struct allocation allocation;
};

static bool free_in_driver(const struct fallback *f)
{
	CUcontext popped;
	bool is_pushed = f->deferred.context &&
			 cuda.cuCtxPushCurrent_v2(f->deferred.context) == CUDA_SUCCESS;
	bool is_freed = cuda.cuMemFree_v2(f->allocation.pointer) == CUDA_SUCCESS;

	if (is_pushed)
		cuda.cuCtxPopCurrent_v2(&popped);
	FAULT("deferred free: the driver freed");
	return is_freed;
}

static bool give_back_fallback(struct deferred_free *d, bool is_gone)
{
	struct fallback *f = (struct fallback *)d;

	if (!is_gone && !free_in_driver(f))
		return false;
	if (d->event)
		cuda.cuEventDestroy_v2(d->event);
	allocations_give_back(&f->allocation);
	free(f);
	return true;
}

CUresult deferred_free_fallback(const struct allocation *allocation, CUstream stream)
{
	struct fallback *f = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*f));
	CUresult r;

	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->allocation = *allocation;
	f->deferred.memory_life = allocation->holding.life;
	f->deferred.give_back = give_back_fallback;
	r = deferred_free_mark(&f->deferred, stream);
	if (r == CUDA_SUCCESS)
		deferred_free_add(&f->deferred);
	else
		free(f);
	return r;
}
