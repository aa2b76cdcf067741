/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: finds the state of the stream that work is for, and lets the device's meter decide.
 *
 * A stream's handle tells it apart, except those that stand for a stream of the context or of the
 * thread. Each thread remembers the last one that it used, with the count of that state's uses: whoever gives a
 * state to another stream counts on, under the meter's lock. A call that leaves the lock and comes back to its
 * state keeps it meanwhile (`users`).
 */
#include "tenant/compute/gate.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/compute/estimate.h"
#include "tenant/compute/meter.h"
#include "tenant/compute/untracked.h"
#include "tenant/compute/signals.h"
#include "tenant/compute/turns.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/wait.h"
#include "tenant/compute/work.h"

struct recent {
	CUstream stream;
	CUcontext context;
	struct meter *meter;
	struct stream_state *state;
	uint32_t use;
};
static __thread struct recent recent;

/*
 * Work that comes in quick succession asks the clock for each 32nd time, so that a poll is late by some
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
	/* relaxed: a poll too early or late does no harm */
	return ticks < atomic_load_explicit(&gate_next_poll, memory_order_relaxed);
}

void gate_context_made(void)
{
	uint32_t off = GATE_OFF;

	if (state_enter() == STATE_OPEN)
		signals_take();
	/* The first poll is now, so that no launch is before it. */
	if (atomic_compare_exchange_strong(&gate_mode, &off, GATE_POLL))
		atomic_store(&gate_next_poll, 0);
	limits_poll();
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

static bool is_state_of(
	const struct stream_state *s, CUstream stream, CUcontext context, const void *thread)
{
	return s->is_used && s->has_stream && s->stream == stream && s->thread == thread &&
	       (!is_of_context(stream) || s->context == context);
}

/* Nobody comes back to a stream that has been idle for so long, or it is found anew at little cost. */
#define IDLE_NS 10000000u

static bool is_free(const struct stream_state *s, uint64_t now_ns)
{
	if (!s->is_used)
		return true;
	return !s->users && stream_state_is_drained(s, now_ns) &&
	       (!s->has_stream || s->last_ns + IDLE_NS < now_ns);
}

/* With the meter's lock: a stream state for another stream, or NULL. */
static struct stream_state *take_state(struct meter *m, uint64_t now_ns)
{
	work_collect(m, now_ns);
	for (unsigned i = 0; i < METER_STREAMS; i++) {
		struct stream_state *s = &m->streams[i];

		if (!is_free(s, now_ns))
			continue;
		if (s->is_used) {
			work_end_batch(s, now_ns, false);
			stream_state_free(s);
		}
		if (i >= m->stream_high)
			m->stream_high = i + 1;
		return s;
	}
	return NULL;
}

/* More streams work at the same time than can be told apart: some are metered as one. */
static struct stream_state *any_state(struct meter *m, CUstream stream)
{
	return &m->streams[hash_u64((uintptr_t)stream) % METER_STREAMS];
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
static struct stream_state *find_in(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	struct stream_state *s;

	for (unsigned i = 0; i < m->stream_high; i++)
		if (is_state_of(&m->streams[i], stream, context, thread))
			return &m->streams[i];
	s = take_state(m, clock_now_ns());
	FAULT("gate: stream state taken");
	if (!s)
		return any_state(m, stream);
	*s = (struct stream_state){.is_used = true,
		.has_stream = true,
		.stream = stream,
		.context = context,
		.thread = thread,
		.use = s->use,
		.meter = m,
		.timebase = timebase_of(m, context)};
	return s;
}

static struct stream_state *enter_slowly(CUstream stream, CUcontext context)
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
	recent.state = find_in(m, stream, context, thread_of(stream));
	recent.use = recent.state->use;
	recent.meter = m;
	recent.stream = stream;
	recent.context = context;
	return recent.state;
}

/* The stream's state, with its meter's lock; NULL where the driver knows no context: it will say so itself. */
static struct stream_state *enter(CUstream stream)
{
	CUcontext context = NULL;

	if (is_of_context(stream) &&
		(!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS))
		return NULL;
	if (LIKELY(recent.state && recent.stream == stream &&
		    (!context || recent.context == context))) {
		lock_enter(&recent.meter->lock);
		if (LIKELY(recent.state->use == recent.use))
			return recent.state;
		lock_leave(&recent.meter->lock);
	}
	return enter_slowly(stream, context);
}

static void leave(struct stream_state *s)
{
	lock_leave(&s->meter->lock);
}

static bool is_on(uint64_t ticks)
{
	/* First, as a child of fork() has nothing yet to look at. */
	if (UNLIKELY(state_enter() != STATE_OPEN))
		return false;
	/* relaxed: see gate_is_open() */
	if (UNLIKELY(ticks >= atomic_load_explicit(&gate_next_poll, memory_order_relaxed)))
		limits_poll();
	return atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	int saved_errno = errno;
	uint64_t ticks = clock_ticks();

	ret_pass->state = NULL;
	if (is_on(ticks) && !capture_is_on(stream)) {
		struct stream_state *s = enter(stream);

		if (s && meter_admit(s, estimate_find(key), poll_now_ns(ticks))) {
			s->users++;
			ret_pass->state = s;
		}
		if (s)
			leave(s);
	}
	errno = saved_errno;
}

void gate_leave_slowly(struct gate_pass *pass, CUresult result)
{
	int saved_errno = errno;
	struct stream_state *s = pass->state;

	(void)result; /* what was not launched takes no time, and that is what is charged */
	lock_enter(&s->meter->lock);
	meter_given(s);
	s->users--;
	leave(s);
	errno = saved_errno;
}

void gate_copy_slowly(CUstream stream, uint64_t bytes)
{
	int saved_errno = errno;
	struct stream_state *s;

	if (is_on(clock_ticks()) && !capture_is_on(stream)) {
		s = enter(stream);
		if (s) {
			wait_while_suspended(s);
			if (bytes >= GATE_COPY_BYTES) {
				work_end_batch(s, clock_now_ns(), true);
				s->is_chained = false;
			}
			leave(s);
		}
	}
	errno = saved_errno;
}

/* What is measured exactly before it is waited for: an event costs 1 us (H200). */
#define WORTH_AN_EVENT_NS 200000u

void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	int saved_errno = errno;
	struct stream_state *s = NULL;

	*ret_wait = (struct gate_wait){
		.since_ns = clock_now_ns(), .is_watched = true, .is_all = is_all};
	/* A child of fork() forgets its parent's streams, whose locks may be held for ever. */
	if (state_enter() != STATE_OPEN) {
		ret_wait->is_watched = false;
		errno = saved_errno;
		return;
	}
	if (!is_all && stream != GATE_ANY_STREAM)
		s = enter(stream);
	if (s) {
		if (s->is_open && stream_state_batch(s)->expected_ns >= WORTH_AN_EVENT_NS &&
			!capture_is_on(stream))
			work_end_batch(s, clock_now_ns(), true);
		s->users++;
		leave(s);
	}
	ret_wait->state = s;
	untracked_poll_before_wait(ret_wait->since_ns);
	errno = saved_errno;
}

/* A wait that took longer ended with the work, whatever was expected; less is the call itself. */
#define BLOCKED_NS 20000u

/* With the meter's lock: the stream's work is done, as it was waited for since then. */
static void drain(struct stream_state *s, uint64_t since_ns, uint64_t now_ns)
{
	if (!s->is_used)
		return;
	s->is_waited_for = s->last_ns <= since_ns;
	if (s->drained_ns > now_ns || (s->is_open && now_ns > since_ns + BLOCKED_NS))
		s->drained_ns = now_ns;
}

/* With the meter's lock: the stream of it that this thread used last, if nothing there is under way; else NULL. */
static struct stream_state *recent_if_done(const struct meter *m)
{
	struct stream_state *s = recent.state;

	if (!s || recent.meter != m || recent.use != s->use)
		return NULL;
	return s->is_open && stream_state_is_done(s) ? s : NULL;
}

static void finish_wait(
	struct meter *m, const struct gate_wait *wait, CUcontext context, uint64_t now_ns)
{
	struct stream_state *s = wait->state;

	work_collect(m, now_ns);
	if (!s && !wait->is_all)
		s = recent_if_done(m);
	if (s)
		drain(s, wait->since_ns, now_ns);
	for (unsigned i = 0; wait->is_all && i < m->stream_high; i++)
		if (m->streams[i].context == context)
			drain(&m->streams[i], wait->since_ns, now_ns);
	turns_idle(m, now_ns);
}

void gate_wait_end_slowly(struct gate_wait *wait, CUresult result)
{
	int saved_errno = errno;
	uint64_t now_ns = clock_now_ns();
	struct stream_state *s = wait->state;
	struct device *device;
	struct meter *m = NULL;
	CUcontext context = NULL;

	if (s)
		m = s->meter;
	else if (state_current_device(&device) == CUDA_SUCCESS &&
		 cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
		m = meter_of(device);
	if (m) {
		LOCK_SCOPE(&m->lock);
		if (s)
			s->users--;
		if (result == CUDA_SUCCESS)
			finish_wait(m, wait, context, now_ns);
	}
	errno = saved_errno;
}

void gate_stream_ends(CUstream stream)
{
	int saved_errno = errno;

	/* relaxed: as in gate_is_open(); without streams there is nothing to find */
	if (atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_OFF ||
		is_of_context(stream) || state_enter() != STATE_OPEN)
		return;
	for (unsigned k = 0; k < REGION_DEVICES; k++) {
		struct meter *m = &meters[k];

		if (!atomic_load(&m->is_ready))
			continue;
		LOCK_SCOPE(&m->lock);
		for (unsigned i = 0; i < m->stream_high; i++) {
			struct stream_state *s = &m->streams[i];

			if (!s->is_used || !s->has_stream || s->stream != stream)
				continue;
			FAULT("gate: stream ends");
			work_end_batch(s, clock_now_ns(), true);
			s->has_stream = false;
			s->is_chained = false;
			s->use++;
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
	for (unsigned i = 0; i < m->stream_high; i++)
		if (m->streams[i].is_used && m->streams[i].context == context)
			stream_state_lose_context(&m->streams[i]);
	for (unsigned i = 0; i < METER_CONTEXTS; i++)
		if (m->timebases[i].context == context)
			m->timebases[i] = (struct timebase){.context = NULL};
	turns_idle(m, clock_now_ns());
}

void gate_reset_after_fork(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&gate_mode, GATE_OFF, memory_order_relaxed);
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		uint32_t uses[METER_STREAMS];

		if (!meters[i].is_ready)
			continue;
		turn_reset_after_fork(&meters[i].turn);
		/* This thread, too, remembers one of the parent's. */
		for (unsigned k = 0; k < METER_STREAMS; k++)
			uses[k] = meters[i].streams[k].use + 1;
		memset(&meters[i], 0, sizeof(meters[i]));
		for (unsigned k = 0; k < METER_STREAMS; k++)
			meters[i].streams[k].use = uses[k];
	}
}
