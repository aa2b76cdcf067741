/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back when a stream has got there. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/deferred_free.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"
#include "tenant/memory/contexts.h"

static struct lock list_lock; /* held for the list alone, never while the driver is asked */
static struct deferred_free *list;
static struct deferred_free **list_end = &list;
static _Atomic uint32_t count; /* of those in the list, and those taken out to be given back */
static _Atomic uint64_t last_round;

/* So many streams of which the oldest one waits are remembered, and what waits behind it is not asked for. */
#define WALK_STREAMS 16
#define SOME	     8

/* One collection. */
struct walk {
	uint64_t round;
	size_t left; /* so many are looked at */
	unsigned count;
	struct {
		CUcontext context;
		CUstream stream;
	} waiting[WALK_STREAMS];
};

/* The event, recorded on the stream; its context is current. */
static CUresult record(struct deferred_free *d, CUstream stream)
{
	CUresult r = own_events_create(&d->event, CU_EVENT_DISABLE_TIMING);

	if (r == CUDA_SUCCESS) {
		r = cuda.cuEventRecord(d->event, stream);
		if (r != CUDA_SUCCESS)
			own_events_destroy(d->event);
	}
	if (r != CUDA_SUCCESS)
		d->event = NULL;
	return r;
}

void deferred_free_begin(struct deferred_free *d, CUstream stream)
{
	d->is_held = capture_hold_off_changes();
	d->stream = stream;
	d->context = contexts_of_stream(stream);
	d->life = contexts_life_of(d->context);
}

void deferred_free_end(struct deferred_free *d)
{
	if (d->is_held)
		capture_let_changes();
	d->is_held = false;
}

CUresult deferred_free_mark(struct deferred_free *d, CUstream stream)
{
	CUcontext popped;
	CUresult r;

	d->event = NULL;
	/* The default stream is of whichever context is current, and a signal's handler may change that. */
	if (!d->is_held || contexts_of_stream(stream) != d->context) {
		d->context = NULL;
		d->life = 0;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
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
	d->next = NULL;
	d->at = list_end;
	*list_end = d;
	list_end = &d->next;
}

/* Under the lock. */
static void take_out(struct deferred_free *d)
{
	*d->at = d->next;
	if (d->next)
		d->next->at = d->at;
	else
		list_end = d->at;
}

void deferred_free_add(struct deferred_free *d)
{
	atomic_fetch_add(&count, 1);
	put_in(d);
}

/* A handle that is a stream, and not the word for the default one of whichever thread. */
static bool is_of_one_stream(const struct deferred_free *d)
{
	return d->context && d->stream && d->stream != CU_STREAM_LEGACY &&
	       d->stream != CU_STREAM_PER_THREAD;
}

static bool is_over(const struct deferred_free *d)
{
	return d->is_passed || d->is_gone || d->is_unseen;
}

/* Whether one that came before it waits in the same stream. */
static bool is_behind(const struct walk *w, const struct deferred_free *d)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->waiting[i].stream == d->stream && w->waiting[i].context == d->context)
			return !is_over(d) && is_of_one_stream(d);
	return false;
}

static void remember(struct walk *w, const struct deferred_free *d)
{
	if (!is_of_one_stream(d) || w->count == WALK_STREAMS)
		return;
	w->waiting[w->count].context = d->context;
	w->waiting[w->count++].stream = d->stream;
}

/*
 * From this one on, the next one that this round has not looked at. It stays in the list, where the end of a context finds it, and
 * nobody else takes it out. Under the lock.
 */
static struct deferred_free *find(struct walk *w, struct deferred_free *d)
{
	for (; d && w->left > 0; d = d->next) {
		w->left--;
		if (d->is_polled || d->round >= w->round)
			continue;
		d->round = w->round;
		if (is_behind(w, d))
			continue;
		d->is_polled = true;
		return d;
	}
	return NULL;
}

static struct deferred_free *begin_polls(struct walk *w)
{
	LOCK_SCOPE(&list_lock);

	return find(w, list);
}

/* Returns the next one, too. *ret_is_over: it can be given back, and is out of the list then. */
static struct deferred_free *end_poll(
	struct walk *w, struct deferred_free *d, bool is_passed, bool *ret_is_over)
{
	LOCK_SCOPE(&list_lock);
	struct deferred_free *next;

	d->is_polled = false;
	d->is_passed |= is_passed;
	*ret_is_over = is_over(d);
	if (!*ret_is_over)
		remember(w, d);
	next = find(w, d->next);
	if (*ret_is_over) {
		take_out(d);
		if (!d->context)
			d->event = NULL;
	}
	return next;
}

/*
 * An event's word counts while it is the library's, and only where no context was ending: one that has ended with its context says
 * anything, or what another one of that handle says. A stream of the program that is captured must not notice our question.
 */
static bool has_passed(CUevent event)
{
	uint64_t since = charge_since();
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool can_exchange = cuda.cuThreadExchangeStreamCaptureMode &&
			    cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	bool has_passed = cuda.cuEventQuery(event) == CUDA_SUCCESS;

	if (can_exchange)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
	return has_passed && own_events_has(event) && charge_is_sure(since);
}

static enum deferred_free_end end_of(const struct deferred_free *d)
{
	if (d->is_gone)
		return DEFERRED_FREE_GONE;
	return d->is_passed ? DEFERRED_FREE_PASSED : DEFERRED_FREE_UNSEEN;
}

static void give_back(struct deferred_free *d)
{
	if (d->event) {
		own_events_destroy(d->event);
		d->event = NULL;
	}
	if (d->give_back(d, end_of(d)))
		atomic_fetch_sub(&count, 1);
	else
		put_in(d);
}

/* Gives back what can be, of so many. */
static void collect(size_t most)
{
	struct walk w = {.round = atomic_fetch_add(&last_round, 1) + 1, .left = most};
	struct deferred_free *d = begin_polls(&w), *next;
	bool is_to_go;

	for (; d; d = next) {
		bool is_asked = d->event && !is_over(d);

		next = end_poll(&w, d, is_asked && has_passed(d->event), &is_to_go);
		if (is_to_go)
			give_back(d);
	}
}

/* Those whose event, or whose memory, has ended with a context. That the event has does not say that the stream had got there. */
static void mark_ended(uint64_t life)
{
	LOCK_SCOPE(&list_lock);

	for (struct deferred_free *d = list; d; d = d->next) {
		d->is_gone |= d->memory_life == life;
		if (d->life == life) {
			d->context = NULL;
			d->life = 0;
			d->is_unseen = true;
		}
	}
}

void deferred_free_collect(void)
{
	if (UNLIKELY(deferred_free_is_any()))
		collect(SIZE_MAX);
}

/* Looks at the first few alone: for calls of which a program makes as many as there are that wait. */
static void collect_some(void)
{
	if (UNLIKELY(deferred_free_is_any()))
		collect(SOME);
}

void deferred_free_collect_all(struct device *device)
{
	(void)device;
	deferred_free_collect();
}

void deferred_free_context_ends(CUcontext context)
{
	(void)context;
	deferred_free_collect();
}

void deferred_free_life_ended(struct device *device, uint64_t life)
{
	(void)device;
	if (!life || !deferred_free_is_any())
		return;
	mark_ended(life);
	collect(SIZE_MAX);
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
	list_end = &list;
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

/* Of what the driver frees, when nobody sees that it has. What no figure shows waits for the end of its own context. */
static bool leave_to_figure(struct freed *f)
{
	if (!holding_leave_to_figure(f->allocation.pointer, &f->allocation.holding)) {
		f->deferred.is_unseen = false;
		return false;
	}
	free(f);
	return true;
}

static bool give_back_allocation(struct deferred_free *d, enum deferred_free_end how)
{
	struct freed *f = (struct freed *)d;

	if (how == DEFERRED_FREE_UNSEEN && f->is_drivers)
		return leave_to_figure(f);
	if (how != DEFERRED_FREE_GONE && !f->is_drivers && !free_in_driver(f))
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
	deferred_free_begin(&f->deferred, stream);
	r = call ? call(allocation->pointer, stream) : CUDA_SUCCESS;
	marked = r == CUDA_SUCCESS ? deferred_free_mark(&f->deferred, stream) : r;
	deferred_free_end(&f->deferred);
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
		collect_some();
	return r;
}
