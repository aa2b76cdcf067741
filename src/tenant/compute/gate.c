/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: finds the track of the stream that work is for, and lets the device's meter decide.
 *
 * A stream's handle tells it apart, except those that stand for a stream of the context or of the
 * thread. Each thread remembers the last one that it used, with the count of that track's uses: whoever gives a
 * track to another stream counts on, under the meter's lock. A call that leaves the lock and comes back to its
 * track keeps it meanwhile (`users`).
 */
#include "tenant/compute/gate.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/compute/estimate.h"
#include "tenant/compute/hindrance.h"
#include "tenant/compute/meter.h"
#include "tenant/compute/neighbours.h"
#include "tenant/compute/signals.h"
#include "tenant/compute/terms.h"
#include "tenant/compute/work.h"

struct recent {
	CUstream stream;
	CUcontext context;
	struct meter *meter;
	struct track *track;
	uint32_t use;
};
static __thread struct recent recent;

/*
 * Work that comes in quick succession asks the clock for each 32nd time, so that a look is late by some
 * 100 us; and work that comes slowly asks each time.
 */
#define FREE_PASSES 32
#define QUICK_TICKS 3000000 /* for all of them: about a ms */

__thread uint32_t gate_free_passes;

bool gate_has_rest(void)
{
	static __thread uint64_t asked_ticks;
	uint64_t ticks = clock_ticks();

	gate_free_passes = ticks - asked_ticks < QUICK_TICKS ? FREE_PASSES : 0;
	asked_ticks = ticks;
	/* relaxed: a look too early or late does no harm */
	return ticks < atomic_load_explicit(&gate_next_look, memory_order_relaxed);
}

void gate_context_made(void)
{
	uint32_t off = GATE_OFF;

	if (state_enter() == STATE_OPEN)
		signals_take();
	/* The first look is now, so that no launch is before it. */
	if (atomic_compare_exchange_strong(&gate_mode, &off, GATE_LOOK))
		atomic_store(&gate_next_look, 0);
	terms_look();
}

/* Handles that mean another stream in each context, and in each thread. */
static bool is_of_context(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static const void *thread_of(CUstream stream)
{
	return stream == CU_STREAM_PER_THREAD ? &recent : NULL;
}

static bool is_track_of(
	const struct track *t, CUstream stream, CUcontext context, const void *thread)
{
	return t->is_used && t->has_stream && t->stream == stream && t->thread == thread &&
	       (!is_of_context(stream) || t->context == context);
}

/* Nobody comes back to a stream that has been idle for so long, or it is found anew at little cost. */
#define IDLE_NS 10000000u

static bool is_free(const struct track *t, uint64_t now_ns)
{
	if (!t->is_used)
		return true;
	return !t->users && track_is_drained(t, now_ns) &&
	       (!t->has_stream || t->last_ns + IDLE_NS < now_ns);
}

/* With the meter's lock: a track for another stream, or NULL. */
static struct track *take_track(struct meter *m, uint64_t now_ns)
{
	work_settle(m, now_ns);
	for (unsigned i = 0; i < METER_TRACKS; i++) {
		struct track *t = &m->tracks[i];

		if (!is_free(t, now_ns))
			continue;
		if (t->is_used) {
			work_end_batch(t, now_ns, false);
			track_free(t);
		}
		if (i >= m->track_high)
			m->track_high = i + 1;
		return t;
	}
	return NULL;
}

/* More streams work at the same time than can be told apart: some are metered as one. */
static struct track *any_track(struct meter *m, CUstream stream)
{
	return &m->tracks[hash_u64((uintptr_t)stream) % METER_TRACKS];
}

/* Contexts beyond the places share the last one, with spans that are placed less exactly. */
static struct timebase *timebase_of(struct meter *m, CUcontext context)
{
	struct timebase *b = m->timebases;

	while (b < &m->timebases[METER_CONTEXTS - 1] && b->context && b->context != context)
		b++;
	b->context = context;
	return b;
}

/* With the meter's lock. */
static struct track *find_in(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	struct track *t;

	for (unsigned i = 0; i < m->track_high; i++)
		if (is_track_of(&m->tracks[i], stream, context, thread))
			return &m->tracks[i];
	t = take_track(m, clock_now_ns());
	FAULT("gate: track taken");
	if (!t)
		return any_track(m, stream);
	*t = (struct track){.is_used = true,
		.has_stream = true,
		.stream = stream,
		.context = context,
		.thread = thread,
		.use = t->use,
		.meter = m,
		.timebase = timebase_of(m, context)};
	return t;
}

static struct track *enter_slowly(CUstream stream, CUcontext context)
{
	struct device *device;
	struct meter *m;

	if (!context && (!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
				!context))
		return NULL;
	if (state_current_device(&device) != CUDA_SUCCESS)
		return NULL;
	m = meter_of(device);
	lock_enter(&m->lock);
	recent.track = find_in(m, stream, context, thread_of(stream));
	recent.use = recent.track->use;
	recent.meter = m;
	recent.stream = stream;
	recent.context = context;
	return recent.track;
}

/* The stream's track, with its meter's lock; NULL where the driver knows no context: it will say so itself. */
static struct track *enter(CUstream stream)
{
	CUcontext context = NULL;

	if (is_of_context(stream) &&
		(!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS))
		return NULL;
	if (LIKELY(recent.track && recent.stream == stream &&
		    (!context || recent.context == context))) {
		lock_enter(&recent.meter->lock);
		if (LIKELY(recent.track->use == recent.use))
			return recent.track;
		lock_leave(&recent.meter->lock);
	}
	return enter_slowly(stream, context);
}

static void leave(struct track *t)
{
	lock_leave(&t->meter->lock);
}

static bool is_on(uint64_t ticks)
{
	/* First, as a child of fork() has nothing yet to look at. */
	if (UNLIKELY(state_enter() != STATE_OPEN))
		return false;
	/* relaxed: see gate_is_open() */
	if (UNLIKELY(ticks >= atomic_load_explicit(&gate_next_look, memory_order_relaxed)))
		terms_look();
	return atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	int saved_errno = errno;
	uint64_t ticks = clock_ticks();

	ret_pass->track = NULL;
	if (is_on(ticks) && !capture_is_on(stream)) {
		struct track *t = enter(stream);

		if (t && meter_admit(t, estimate_find(key), look_now_ns(ticks))) {
			t->users++;
			ret_pass->track = t;
		}
		if (t)
			leave(t);
	}
	errno = saved_errno;
}

void gate_leave_slowly(struct gate_pass *pass, CUresult result)
{
	int saved_errno = errno;
	struct track *t = pass->track;

	(void)result; /* what was not launched takes no time, and that is what is charged */
	lock_enter(&t->meter->lock);
	meter_given(t);
	t->users--;
	leave(t);
	errno = saved_errno;
}

void gate_copy_slowly(CUstream stream, uint64_t bytes)
{
	int saved_errno = errno;
	struct track *t;

	if (is_on(clock_ticks()) && !capture_is_on(stream)) {
		t = enter(stream);
		if (t) {
			hindrance_pass_suspension(t);
			if (bytes >= GATE_COPY_BYTES) {
				work_end_batch(t, clock_now_ns(), true);
				t->is_chained = false;
			}
			leave(t);
		}
	}
	errno = saved_errno;
}

/* What is measured exactly before it is waited for: an event costs 1 us (H200). */
#define WORTH_AN_EVENT_NS 200000u

void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	int saved_errno = errno;
	struct track *t = NULL;

	*ret_wait = (struct gate_wait){
		.since_ns = clock_now_ns(), .is_watched = true, .is_all = is_all};
	/* A child of fork() forgets its parent's tracks, whose locks may be held for ever. */
	if (state_enter() != STATE_OPEN) {
		ret_wait->is_watched = false;
		errno = saved_errno;
		return;
	}
	if (!is_all && stream != GATE_ANY_STREAM)
		t = enter(stream);
	if (t) {
		if (t->is_open && track_batch(t)->expected_ns >= WORTH_AN_EVENT_NS &&
			!capture_is_on(stream))
			work_end_batch(t, clock_now_ns(), true);
		t->users++;
		leave(t);
	}
	ret_wait->track = t;
	neighbours_look_before_wait(ret_wait->since_ns);
	errno = saved_errno;
}

/* A wait that took longer ended with the work, whatever was expected; less is the call itself. */
#define BLOCKED_NS 20000u

/* With the meter's lock: the track's work is done, as its stream was waited for since then. */
static void drain(struct track *t, uint64_t since_ns, uint64_t now_ns)
{
	if (!t->is_used)
		return;
	t->is_waited_for = t->last_ns <= since_ns;
	if (t->drained_ns > now_ns || (t->is_open && now_ns > since_ns + BLOCKED_NS))
		t->drained_ns = now_ns;
}

/* With the meter's lock: the stream of it that this thread used last, if nothing there is under way; else NULL. */
static struct track *recent_if_done(const struct meter *m)
{
	struct track *t = recent.track;

	if (!t || recent.meter != m || recent.use != t->use)
		return NULL;
	return t->is_open && track_is_done(t) ? t : NULL;
}

static void settle_wait(
	struct meter *m, const struct gate_wait *wait, CUcontext context, uint64_t now_ns)
{
	struct track *t = wait->track;

	work_settle(m, now_ns);
	if (!t && !wait->is_all)
		t = recent_if_done(m);
	if (t)
		drain(t, wait->since_ns, now_ns);
	for (unsigned i = 0; wait->is_all && i < m->track_high; i++)
		if (m->tracks[i].context == context)
			drain(&m->tracks[i], wait->since_ns, now_ns);
	work_let_go(m, now_ns);
}

void gate_wait_end_slowly(struct gate_wait *wait, CUresult result)
{
	int saved_errno = errno;
	uint64_t now_ns = clock_now_ns();
	struct track *t = wait->track;
	struct device *device;
	struct meter *m = NULL;
	CUcontext context = NULL;

	if (t)
		m = t->meter;
	else if (state_current_device(&device) == CUDA_SUCCESS &&
		 cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
		m = meter_of(device);
	if (m) {
		LOCK_SCOPE(&m->lock);
		if (t)
			t->users--;
		if (result == CUDA_SUCCESS)
			settle_wait(m, wait, context, now_ns);
	}
	errno = saved_errno;
}

void gate_stream_ends(CUstream stream)
{
	int saved_errno = errno;

	/* relaxed: as in gate_is_open(); without tracks there is nothing to find */
	if (atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_OFF ||
		is_of_context(stream) || state_enter() != STATE_OPEN)
		return;
	for (unsigned k = 0; k < REGION_DEVICES; k++) {
		struct meter *m = &meters[k];

		if (!atomic_load(&m->is_ready))
			continue;
		LOCK_SCOPE(&m->lock);
		for (unsigned i = 0; i < m->track_high; i++) {
			struct track *t = &m->tracks[i];

			if (!t->is_used || !t->has_stream || t->stream != stream)
				continue;
			FAULT("gate: stream ends");
			work_end_batch(t, clock_now_ns(), true);
			t->has_stream = false;
			t->is_chained = false;
			t->use++;
		}
	}
	errno = saved_errno;
}

void gate_context_ended(struct device *device, CUcontext context)
{
	struct meter *m = &meters[device->entry];

	if (!atomic_load(&m->is_ready))
		return;
	LOCK_SCOPE(&m->lock);
	/* What was under way stays charged as it was expected. */
	for (unsigned i = 0; i < m->track_high; i++)
		if (m->tracks[i].is_used && m->tracks[i].context == context)
			track_lose_context(&m->tracks[i]);
	for (unsigned i = 0; i < METER_CONTEXTS; i++)
		if (m->timebases[i].context == context)
			m->timebases[i] = (struct timebase){.context = NULL};
	work_let_go(m, clock_now_ns());
}

void gate_reset_after_fork(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&gate_mode, GATE_OFF, memory_order_relaxed);
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		uint32_t uses[METER_TRACKS];

		if (!meters[i].is_ready)
			continue;
		turn_reset_after_fork(&meters[i].turn);
		/* This thread, too, remembers one of the parent's. */
		for (unsigned k = 0; k < METER_TRACKS; k++)
			uses[k] = meters[i].tracks[k].use + 1;
		memset(&meters[i], 0, sizeof(meters[i]));
		for (unsigned k = 0; k < METER_TRACKS; k++)
			meters[i].tracks[k].use = uses[k];
	}
}
