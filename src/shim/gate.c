/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: finds the track of the stream that work is for, and lets the device's meter decide.
 *
 * A stream's handle tells it apart, except those that stand for a stream of the context or of the
 * thread. Each thread remembers the last one that it used, as long as no stream or context has gone since.
 */
#include "shim/gate.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "shim/capture.h"
#include "shim/doors.h"
#include "shim/guess.h"
#include "shim/hindrance.h"
#include "shim/meter.h"
#include "shim/neighbours.h"
#include "shim/signals.h"

_Atomic uint32_t gate_mode;
_Atomic uint64_t gate_next_look;

/* Counts whatever makes remembered tracks wrong. */
static _Atomic uint32_t generation;

struct recent {
	CUstream stream;
	CUcontext context;
	struct track *track;
	uint32_t generation;
};
static __thread struct recent recent;

#define LOOK_NS 50000000u

/*
 * The host's clock by the processor's ticks, between two looks. Written by whoever looks, one at a time
 * (is_time_to_look()), read by all: sequence is odd while it changes.
 */
static struct {
	_Atomic uint32_t sequence;
	_Atomic uint64_t ticks, ns;
	_Atomic uint64_t ns_per_tick; /* << 32; 0: not known yet */
} rate;

#define RATE_TICKS UINT64_C(0x80000000) /* further from the last look it is not believed */

static void set_rate(uint64_t ticks, uint64_t ns, uint64_t ns_per_tick)
{
	/* acquire and release: pair with those in quick_now_ns() */
	atomic_fetch_add_explicit(&rate.sequence, 1, memory_order_acq_rel);
	/* relaxed: between the two of the sequence */
	atomic_store_explicit(&rate.ticks, ticks, memory_order_relaxed);
	atomic_store_explicit(&rate.ns, ns, memory_order_relaxed);
	atomic_store_explicit(&rate.ns_per_tick, ns_per_tick, memory_order_relaxed);
	atomic_fetch_add_explicit(&rate.sequence, 1, memory_order_release);
}

/* The clock at these ticks, to some us; costs 2 ns where clock_now_ns() costs 27. */
static uint64_t quick_now_ns(uint64_t ticks)
{
	/* pairs with the release in set_rate() */
	uint32_t sequence = atomic_load_explicit(&rate.sequence, memory_order_acquire);
	uint64_t from = atomic_load_explicit(&rate.ticks, memory_order_relaxed);
	uint64_t ns = atomic_load_explicit(&rate.ns, memory_order_relaxed);
	uint64_t each = atomic_load_explicit(&rate.ns_per_tick, memory_order_relaxed);

	/* the loads above are not later than the one below */
	atomic_thread_fence(memory_order_acquire);
	if (UNLIKELY(sequence % 2 || !each || ticks - from > RATE_TICKS ||
		     atomic_load_explicit(&rate.sequence, memory_order_relaxed) != sequence))
		return clock_now_ns();
	return ns + ((ticks - from) * (each >> 8) >> 24);
}

/* Sets the next look, by what a look ago tells of the ticks' rate; false where another thread does. */
static bool is_time_to_look(uint64_t now_ns)
{
	static _Atomic uint64_t last_ticks, last_ns;
	/* relaxed all: a look too early or late does no harm */
	uint64_t due = atomic_load_explicit(&gate_next_look, memory_order_relaxed);
	uint64_t ticks = clock_ticks(), passed_ticks, passed_ns, step = LOOK_NS;

	passed_ticks = ticks - atomic_exchange_explicit(&last_ticks, ticks, memory_order_relaxed);
	passed_ns = now_ns - atomic_exchange_explicit(&last_ns, now_ns, memory_order_relaxed);
	if (passed_ns > LOOK_NS / 2 && passed_ns < 100 * (uint64_t)LOOK_NS)
		step = (uint64_t)((double)passed_ticks / (double)passed_ns * LOOK_NS);
	else
		passed_ns = 0;
	if (!atomic_compare_exchange_strong_explicit(&gate_next_look, &due, ticks + step,
		    memory_order_relaxed, memory_order_relaxed))
		return false;
	set_rate(ticks, now_ns,
		passed_ns ? (uint64_t)((double)passed_ns / (double)passed_ticks * 4294967296.0)
			  : 0);
	return true;
}

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
	/* relaxed: as above */
	return ticks < atomic_load_explicit(&gate_next_look, memory_order_relaxed);
}

void gate_look(void)
{
	uint64_t now_ns;
	bool is_metered = false;

	/* relaxed: as above */
	if (LIKELY(clock_ticks() < atomic_load_explicit(&gate_next_look, memory_order_relaxed)))
		return;
	now_ns = clock_now_ns();
	if (!is_time_to_look(now_ns))
		return;
	state_refresh_limits(false);
	for (int i = 0; i < STATE_ORDINALS; i++) {
		struct device *device = state_known_device(i);

		if (device && meter_refresh(meter_of(device), now_ns))
			is_metered = true;
	}
	/* relaxed: see gate_is_open() */
	atomic_store_explicit(&gate_mode, is_metered ? GATE_ON : GATE_LOOK, memory_order_relaxed);
}

void gate_context_made(void)
{
	uint32_t off = GATE_OFF;

	if (state_enter() == STATE_OPEN)
		signals_take();
	/* The first look is now, so that no launch is before it. */
	if (atomic_compare_exchange_strong(&gate_mode, &off, GATE_LOOK))
		atomic_store(&gate_next_look, 0);
	gate_look();
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
	return track_is_drained(t, now_ns) && (!t->has_stream || t->last_ns + IDLE_NS < now_ns);
}

/* With the meter's lock: a track for another stream, or NULL. */
static struct track *take_track(struct meter *m, uint64_t now_ns)
{
	meter_settle(m, now_ns);
	for (unsigned i = 0; i < METER_TRACKS; i++) {
		struct track *t = &m->tracks[i];

		if (!is_free(t, now_ns))
			continue;
		if (t->is_used) {
			meter_end_batch(t, now_ns, false);
			track_free(t, true);
			/* pairs with the acquire in find() */
			atomic_fetch_add(&generation, 1);
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

static struct track *find_in(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	struct track *t;

	LOCK_SCOPE(&m->lock);
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
		.meter = m,
		.timebase = timebase_of(m, context)};
	return t;
}

/* NULL where the driver knows no context: it will say so itself. */
static struct track *find_slowly(CUstream stream, CUcontext context)
{
	/* pairs with the increments: who destroys a stream has ended its use before */
	uint32_t now = atomic_load_explicit(&generation, memory_order_acquire);
	struct device *device;

	if (!context && (!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
				!context))
		return NULL;
	if (state_current_device(&device) != CUDA_SUCCESS)
		return NULL;
	recent.track = find_in(meter_of(device), stream, context, thread_of(stream));
	recent.stream = stream;
	recent.context = context;
	recent.generation = now;
	return recent.track;
}

static struct track *find(CUstream stream)
{
	CUcontext context = NULL;

	if (is_of_context(stream) &&
		(!cuda.cuCtxGetCurrent || cuda.cuCtxGetCurrent(&context) != CUDA_SUCCESS))
		return NULL;
	/* pairs with the increments: as above */
	if (LIKELY(recent.track && recent.stream == stream &&
		    (!context || recent.context == context) &&
		    recent.generation == atomic_load_explicit(&generation, memory_order_acquire)))
		return recent.track;
	return find_slowly(stream, context);
}

static bool is_on(uint64_t ticks)
{
	/* First, as a child of fork() has nothing yet to look at. */
	if (UNLIKELY(state_enter() != STATE_OPEN))
		return false;
	/* relaxed: see gate_is_open() */
	if (UNLIKELY(ticks >= atomic_load_explicit(&gate_next_look, memory_order_relaxed)))
		gate_look();
	return atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	int saved_errno = errno;
	uint64_t ticks = clock_ticks();

	ret_pass->track = NULL;
	if (is_on(ticks) && !capture_is_on(stream)) {
		struct track *t = find(stream);

		if (t && meter_admit(t, guess_find(key), quick_now_ns(ticks)))
			ret_pass->track = t;
	}
	errno = saved_errno;
}

void gate_leave_slowly(struct gate_pass *pass, CUresult result)
{
	int saved_errno = errno;

	(void)result; /* what was not launched takes no time, and that is what is charged */
	meter_given(pass->track);
	errno = saved_errno;
}

void gate_copy_slowly(CUstream stream, uint64_t bytes)
{
	int saved_errno = errno;
	struct track *t;

	if (is_on(clock_ticks()) && !capture_is_on(stream)) {
		t = find(stream);
		if (t)
			hindrance_pass_suspension(t->meter);
		if (t && bytes >= GATE_COPY_BYTES) {
			LOCK_SCOPE(&t->meter->lock);
			meter_end_batch(t, clock_now_ns(), true);
			t->is_chained = false;
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
		t = find(stream);
	if (t) {
		LOCK_SCOPE(&t->meter->lock);
		if (t->is_open && track_batch(t)->expected_ns >= WORTH_AN_EVENT_NS &&
			!capture_is_on(stream))
			meter_end_batch(t, clock_now_ns(), true);
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
	if (t->is_used &&
		(t->drained_ns > now_ns || (t->is_open && now_ns > since_ns + BLOCKED_NS)))
		t->drained_ns = now_ns;
}

void gate_wait_end_slowly(struct gate_wait *wait, CUresult result)
{
	int saved_errno = errno;
	uint64_t now_ns = clock_now_ns();
	struct device *device;
	struct meter *m = NULL;
	CUcontext context;

	if (wait->track)
		m = wait->track->meter;
	else if (state_current_device(&device) == CUDA_SUCCESS &&
		 cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
		m = meter_of(device);
	if (m && result == CUDA_SUCCESS) {
		LOCK_SCOPE(&m->lock);
		meter_settle(m, now_ns);
		if (wait->track)
			drain(wait->track, wait->since_ns, now_ns);
		for (unsigned i = 0; wait->is_all && i < m->track_high; i++)
			if (m->tracks[i].context == context)
				drain(&m->tracks[i], wait->since_ns, now_ns);
		meter_drained(m, now_ns);
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
			meter_end_batch(t, clock_now_ns(), true);
			t->has_stream = false;
			t->is_chained = false;
			/* pairs with the acquire in find() */
			atomic_fetch_add(&generation, 1);
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
			track_free(&m->tracks[i], false);
	for (unsigned i = 0; i < METER_CONTEXTS; i++)
		if (m->timebases[i].context == context)
			m->timebases[i] = (struct timebase){.context = NULL};
	/* pairs with the acquire in find() */
	atomic_fetch_add(&generation, 1);
	meter_drained(m, clock_now_ns());
}

void gate_forget_parent(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&gate_mode, GATE_OFF, memory_order_relaxed);
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		if (!meters[i].is_ready)
			continue;
		turn_forget_parent(&meters[i].turn);
		memset(&meters[i], 0, sizeof(meters[i]));
	}
	atomic_fetch_add(&generation, 1);
}
