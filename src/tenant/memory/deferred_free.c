/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back when a stream has got there. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/deferred_free.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/current.h"
#include "tenant/memory/contexts.h"

static struct lock list_lock; /* held for the list alone, never while the driver is asked */
static struct deferred_free *list;
static _Atomic uint32_t count; /* of those in the list, and those taken out to be given back */
static _Atomic uint64_t last_round;

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

/* The next one that this round has not looked at. It stays in the list, where the end of a context finds it. */
static struct deferred_free *begin_poll(uint64_t round)
{
	LOCK_SCOPE(&list_lock);
	struct deferred_free *d = list;

	while (d && (d->is_polled || d->round >= round))
		d = d->next;
	if (d) {
		d->round = round;
		d->is_polled = true;
	}
	return d;
}

/* Whether it can be given back: it is out of the list then. */
static bool end_poll(struct deferred_free *d, bool is_passed)
{
	LOCK_SCOPE(&list_lock);
	struct deferred_free **at = &list;

	d->is_polled = false;
	d->is_passed |= is_passed;
	if (!d->is_passed && !d->is_gone)
		return false;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	if (!d->context)
		d->event = NULL;
	return true;
}

/* A stream of the program that is captured must not notice our question. */
static bool has_passed(CUevent event)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool can_exchange = cuda.cuThreadExchangeStreamCaptureMode &&
			    cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	bool has_passed = cuda.cuEventQuery(event) == CUDA_SUCCESS;

	if (can_exchange)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
	return has_passed;
}

/* Gives back what can be. */
static void collect(void)
{
	uint64_t round = atomic_fetch_add(&last_round, 1) + 1;
	struct deferred_free *d;

	while ((d = begin_poll(round))) {
		bool is_asked = d->event && !d->is_passed && !d->is_gone;

		if (!end_poll(d, is_asked && has_passed(d->event)))
			continue;
		if (d->event) {
			cuda.cuEventDestroy_v2(d->event);
			d->event = NULL;
		}
		if (d->give_back(d, d->is_gone))
			atomic_fetch_sub(&count, 1);
		else
			put_in(d);
	}
}

/* Those whose event, or whose memory, has ended with a context. */
static void mark_ended(uint64_t life)
{
	LOCK_SCOPE(&list_lock);

	for (struct deferred_free *d = list; d; d = d->next) {
		d->is_gone |= d->memory_life == life;
		if (d->life == life) {
			d->context = NULL;
			d->is_passed = true;
		}
	}
}

void deferred_free_collect(void)
{
	if (UNLIKELY(deferred_free_is_any()))
		collect();
}

void deferred_free_collect_all(struct device *device)
{
	(void)device;
	deferred_free_collect();
}

void deferred_free_life_ended(struct device *device, uint64_t life)
{
	(void)device;
	if (!life || !deferred_free_is_any())
		return;
	mark_ended(life);
	collect();
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

/* An allocation. */
struct freed {
	struct deferred_free deferred;
	struct allocation allocation;
	bool is_drivers; /* the driver frees it when the stream is there */
};

static bool free_in_driver(const struct freed *f)
{
	bool is_entered = current_enter(f->deferred.context);
	bool is_freed = cuda.cuMemFree_v2(f->allocation.pointer) == CUDA_SUCCESS;

	current_leave(is_entered);
	FAULT("deferred free: the driver freed");
	return is_freed;
}

static bool give_back_allocation(struct deferred_free *d, bool is_gone)
{
	struct freed *f = (struct freed *)d;

	if (!is_gone && !f->is_drivers && !free_in_driver(f))
		return false;
	allocations_give_back(&f->allocation);
	free(f);
	return true;
}

CUresult deferred_free_allocation(
	const struct allocation *allocation, CUstream stream, cuMemFreeAsync_fn *call)
{
	struct freed *f = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*f));
	CUresult r, marked;

	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->allocation = *allocation;
	f->is_drivers = call;
	f->deferred.memory_life = allocation->holding.life;
	f->deferred.give_back = give_back_allocation;
	r = call ? call(allocation->pointer, stream) : CUDA_SUCCESS;
	marked = r == CUDA_SUCCESS ? deferred_free_mark(&f->deferred, stream) : r;
	if (!call)
		r = marked;
	if (r != CUDA_SUCCESS) {
		free(f);
		return r;
	}
	if (marked != CUDA_SUCCESS)
		log_warn("no event for what is freed, so it stays charged with its context");
	deferred_free_add(&f->deferred);
	if (call)
		deferred_free_collect();
	return r;
}
