/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: finds the state of the stream that work is for, and lets the device's meter decide. */
#include "tenant/compute/gate.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "tenant/compute/backlog.h"
#include "tenant/compute/collector.h"
#include "tenant/compute/estimate.h"
#include "tenant/compute/events.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/meter.h"
#include "tenant/compute/signals.h"
#include "tenant/compute/untracked.h"
#include "tenant/compute/wait.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_thread.h"

/* Of a stream with so many batches that are not done, what it waits for is charged as work. */
#define BREAKS_MOST (STREAM_PENDING / 2)

/*
 * Work that comes in quick succession asks the clock for each 32nd time, so that a poll is late by some
 * 100 us; and work that comes slowly asks each time.
 */
#define FREE_PASSES 32 /* in about a ms, all of them */

/* So long work is held back that comes behind a copy, which ends by itself, or behind an event. */
#define COPY_PATIENCE_NS  UINT64_C(1000000000)
#define EVENT_PATIENCE_NS UINT64_C(100000000)

#define EXIT_WAIT_NS	  5000000u /* for another thread that has the meter's lock */

static _Atomic bool has_context; /* the process has had one */

__thread uint32_t gate_free_passes;
__thread uint32_t gate_copied[1 << GATE_COPY_BITS];

bool gate_has_rest(void)
{
	static __thread uint64_t asked_ticks;
	uint64_t ticks = clock_ticks();

	gate_free_passes = ticks - asked_ticks < clock_ticks_of_ms() ? FREE_PASSES : 0;
	asked_ticks = ticks;
	/* relaxed: a poll too early or late does no harm */
	return ticks < atomic_load_explicit(&gate_next_poll, memory_order_relaxed);
}

/*
 * Who ends without having waited for his work is not charged for the time in which he gave no more. The driver still
 * answers then: what it does at the end it was asked for before this was.
 */
static void settle_at_exit(void)
{
	CANCEL_PUT_OFF;
	if (!state_has_begun() || !meters_have_region())
		return;
	own_thread_end();
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		struct meter *m = &meters[i];
		uint64_t now_ns;

		if (!atomic_load(&m->is_ready) || !lock_enter_within(&m->lock, EXIT_WAIT_NS))
			continue;
		now_ns = clock_now_ns();
		streams_collect(m, now_ns);
		turns_note_done(m, now_ns);
		lock_leave(&m->lock);
	}
}

void gate_context_comes(struct device *device)
{
	uint32_t off = GATE_OFF;

	if (atomic_compare_exchange_strong(&gate_mode, &off, GATE_POLL)) {
		own_thread_set(collector_look);
		atomic_store(&gate_next_poll, 0);
	}
	limits_begin(device);
}

void gate_context_made(CUcontext context)
{
	static bool
		is_heard; /* of the process's end; and of its children's, which fork() gives the same */

	backlog_context_made(context);
	if (state_enter() == STATE_OPEN)
		signals_take();
	if (!atomic_exchange(&has_context, true)) {
		/* From here on the driver's threads keep the process in its time namespace. */
		if (meters_have_region())
			region_follow_clock(&state.region);
		if (!is_heard)
			is_heard = atexit(settle_at_exit) == 0;
	}
	limits_poll();
}

static bool is_on(uint64_t ticks)
{
	if (UNLIKELY(!meters_have_region()))
		return false;
	/* relaxed: see gate_is_open() */
	if (UNLIKELY(ticks >= atomic_load_explicit(&gate_next_poll, memory_order_relaxed)))
		limits_poll();
	return atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON;
}

/* Each such pass comes back with the lock: its batch ends with it, or it has none. */
static void let_unknown_in(
	struct stream_state *s, struct gate_pass *pass, enum meter_admitted admitted)
{
	bool has_batch = pass->is_full && s->batch->is_unknown;

	pass->is_unknown = has_batch || (admitted == METER_WITHOUT && !pass->capture &&
						estimate_ns(pass->estimate) == ESTIMATE_UNKNOWN_NS);
	if (pass->is_unknown)
		stream_state_let_unknown_in(s, has_batch, clock_now_ns());
}

/* As streams_enter() and streams_enter_if_known(). */
static struct stream_state *enter_state(const struct gate_pass *pass, bool may_wait)
{
	if (pass->device)
		return streams_enter_on(pass->device, pass->stream, may_wait);
	return may_wait ? streams_enter(pass->stream) : streams_enter_if_known(pass->stream);
}

/* What the stream had since the last batch was none of this device's. */
static void begin_part(struct stream_state *s, const struct gate_pass *pass)
{
	if (pass->device && !s->is_open)
		s->is_chained = false;
}

static enum meter_admitted admit(
	struct stream_state *s, const struct gate_pass *pass, uint64_t now_ns)
{
	enum meter_admitted admitted;

	begin_part(s, pass);
	admitted = meter_admit(s, pass->estimate, now_ns);
	return pass->device && admitted == METER_IN_BATCH ? METER_ENDS_BATCH : admitted;
}

void gate_enter_for(
	struct device *device, CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	int saved_errno = errno;
	uint64_t ticks = clock_ticks();

	*ret_pass = (struct gate_pass){
		.is_metered = is_on(ticks), .device = device, .since_ns = poll_now_ns(ticks)};
	if (ret_pass->is_metered) {
		struct stream_state *s;
		enum meter_admitted admitted = METER_WITHOUT;

		current_stays_begin();
		ret_pass->capture = capture_find(stream);
		ret_pass->stream = stream;
		ret_pass->estimate = estimate_find(key);
		s = enter_state(ret_pass, !ret_pass->capture);
		if (s) {
			ret_pass->state = s;
			if (!ret_pass->capture)
				admitted = admit(s, ret_pass, poll_now_ns(ticks));
			ret_pass->is_full = admitted == METER_ENDS_BATCH;
			if (!ret_pass->capture)
				ret_pass->since_ns =
					admitted == METER_WITHOUT ? clock_now_ns() : s->last_ns;
			ret_pass->fresh_count = s->fresh_count;
			/*
			 * Of none, or of a stream that ended while this waited: it is late for
			 * whichever there is then.
			 */
			ret_pass->batch = stream_state_batch(s) -
					  (admitted == METER_WITHOUT || !s->has_stream);
			s->users += ret_pass->is_full;
			let_unknown_in(s, ret_pass, admitted);
			stream_state_let_in(s, poll_now_ns(ticks));
			streams_leave(s);
		}
		own_thread_begin();
	}
	errno = saved_errno;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	gate_enter_for(NULL, stream, key, ret_pass);
}

int gate_ordinal(const struct gate_pass *pass)
{
	const struct stream_state *s = pass->state;

	return pass->is_metered && s && s->meter ? s->meter->device->ordinal : -1;
}

/* Whether the device may have work that a capture was to take, as another thread ended that meanwhile. */
static bool has_run(const struct gate_pass *pass, CUresult result)
{
	uint64_t capture;

	if (result != CUDA_SUCCESS)
		return false;
	capture = capture_find(pass->stream);
	return capture != pass->capture || capture == CAPTURE_UNKNOWN;
}

/*
 * Whether the end of the work can be told by this thread alone, and now: no other one can give its
 * stream an event, and nobody the context, while captures are on.
 */
static bool is_last_chance(const struct stream_state *s)
{
	return capture_may_be_on() && !streams_is_reachable(s);
}

/* With the lock of the state's meter, which it leaves where work has not waited before. */
static void give_late(struct stream_state *s, const struct gate_pass *pass)
{
	bool is_followed = s == pass->state && s->fresh_count == pass->fresh_count;

	begin_part(s, pass);
	meter_given_late(s, pass->estimate, pass->since_ns, is_followed);
	if (pass->capture)
		meter_wait(s, pass->estimate);
}

/* To the stream that has the handle now. */
static void give_late_again(const struct gate_pass *pass)
{
	struct stream_state *s = enter_state(pass, true);

	if (!s)
		return;
	give_late(s, pass);
	streams_leave(s);
}

/* The state's stream may be gone, and another one have its handle: the work is in one of them. */
static void leave_state(struct stream_state *s, const struct gate_pass *pass, bool is_late)
{
	/* Before the lock, for which it may wait. */
	uint64_t given_ns = pass->is_full ? clock_now_ns() : 0;
	bool is_given = is_late, is_again;

	lock_enter(&s->meter->lock);
	if (!pass->capture)
		is_late = is_late && stream_state_batch(s) != pass->batch;
	is_again = is_late && s->is_again;
	s->users++;
	if (pass->is_unknown)
		stream_state_unknown_came_back(s, pass->batch);
	stream_state_came_back(s);
	if (is_late)
		give_late(s, pass);
	else if ((pass->is_full || (is_given && is_last_chance(s))) &&
		 stream_state_batch(s) == pass->batch)
		meter_given(s, given_ns);
	else if (!pass->capture)
		meter_say_busy_since(s->meter, streams_begin_ns(s->meter, clock_now_ns()));
	s->users -= 1 + pass->is_full;
	streams_leave(s);
	if (is_again)
		give_late_again(pass);
}

void gate_leave_slowly(struct gate_pass *pass, CUresult result)
{
	int saved_errno = errno;
	struct stream_state *s = pass->state;

	/* Read before it has come back: who closes the batch until then knows that it may hold none of this work. */
	if (LIKELY(s && !pass->capture && !pass->is_full && stream_state_batch(s) == pass->batch &&
		    !(result == CUDA_SUCCESS && is_last_chance(s)))) {
		stream_state_came_back(s);
		current_stays_end();
		return;
	}
	/*
	 * A child of fork() forgets its parent's streams. What was not launched takes no time, and
	 * that is what is charged.
	 */
	if (s && s->meter)
		leave_state(
			s, pass, pass->capture ? has_run(pass, result) : result == CUDA_SUCCESS);
	else if (!s && pass->capture && has_run(pass, result))
		give_late_again(pass);
	current_stays_end();
	own_thread_begin();
	errno = saved_errno;
}

/* Something that is no work comes into the stream (stream_breaks.h). */
static void pass_by(CUstream stream, unsigned breaks_most, uint64_t patience_ns)
{
	int saved_errno = errno;
	struct stream_state *s = NULL;

	if (is_on(clock_ticks()) && !capture_is_on(stream))
		s = streams_enter_if_known(stream);
	if (s) {
		wait_while_suspended(s);
		streams_pass(s, breaks_most, patience_ns);
		streams_leave(s);
	}
	errno = saved_errno;
}

void gate_copy_slowly(CUstream stream)
{
	*gate_copied_to(stream) = 0;
	pass_by(stream, STREAM_BATCHES, COPY_PATIENCE_NS);
}

/* A program that runs far ahead would have no place left for what comes behind these waits. */
void gate_break_slowly(CUstream stream, uint64_t patience_ns)
{
	pass_by(stream, BREAKS_MOST, patience_ns);
}

/* Where other streams have work the event may be the end of that, and what comes behind it follows that without a pause. */
void gate_event_slowly(CUstream stream, CUevent event)
{
	int saved_errno = errno;
	struct stream_state *s = NULL;
	uint64_t now_ns;

	/* The driver breaks a capture whose event it is asked for. */
	if (is_on(clock_ticks()) && !capture_may_be_on() &&
		events_query(event) == CUDA_ERROR_NOT_READY)
		s = streams_enter_if_known(stream);
	if (s) {
		now_ns = clock_now_ns();
		streams_collect(s->meter, now_ns);
		if (streams_is_alone(s, now_ns))
			stream_state_pass(s, STREAM_BATCHES, EVENT_PATIENCE_NS);
		streams_leave(s);
	}
	errno = saved_errno;
}

void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	int saved_errno = errno;
	struct stream_state *s = NULL;
	struct device *device;

	*ret_wait = (struct gate_wait){.since_ns = clock_now_ns(),
		.current = current_since(),
		.is_watched = true,
		.is_all = is_all};
	/* A child of fork() forgets its parent's streams, whose locks may be held for ever. */
	if (!meters_have_region()) {
		ret_wait->is_watched = false;
		errno = saved_errno;
		return;
	}
	if (is_all)
		ret_wait->context = current_context();
	else if (stream != GATE_ANY_STREAM)
		s = streams_enter_if_known(stream);
	if (s) {
		if (!capture_is_on(stream))
			stream_state_note_wait(s, false, ret_wait->since_ns);
		s->users++;
		ret_wait->meter = s->meter;
		meter_count_wait(s->meter, true);
		turns_wait_for_work(s->meter, ret_wait->since_ns);
		streams_leave(s);
	} else if (state_current_device(&device) == CUDA_SUCCESS) {
		ret_wait->meter = meter_of(device);
		LOCK_SCOPE(&ret_wait->meter->lock);
		meter_count_wait(ret_wait->meter, true);
		streams_wait_begins(ret_wait->meter, ret_wait->context, ret_wait->since_ns);
		turns_wait_for_work(ret_wait->meter, ret_wait->since_ns);
	}
	ret_wait->state = s;
	untracked_poll_before_wait(ret_wait->since_ns);
	errno = saved_errno;
}

/* The context that the driver waited for; NULL: it is not known, as another one was made current meanwhile. */
static CUcontext waited_for(const struct gate_wait *wait)
{
	return current_context() == wait->context && current_is_same(wait->current) ? wait->context
										    : NULL;
}

static void finish_wait(
	struct meter *m, const struct gate_wait *wait, CUcontext context, uint64_t now_ns)
{
	struct stream_state *s = wait->state;

	streams_collect(m, now_ns);
	if (!s && !wait->is_all)
		s = streams_recent_if_done(m);
	if (s)
		stream_state_note_waited(s, true, wait->since_ns, now_ns);
	if (context)
		streams_waited(m, context, wait->since_ns, now_ns);
	turns_note_done(m, now_ns);
}

void gate_wait_end_slowly(struct gate_wait *wait, CUresult result)
{
	int saved_errno = errno;
	uint64_t now_ns = clock_now_ns();
	struct stream_state *s = wait->state;
	struct meter *m = wait->meter;
	CUcontext context = waited_for(wait);

	if (m) {
		LOCK_SCOPE(&m->lock);
		meter_count_wait(m, false);
		if (s)
			s->users--;
		if (result == CUDA_SUCCESS)
			finish_wait(m, wait, context, now_ns);
	}
	errno = saved_errno;
}

void gate_stream_ends(CUstream stream, struct stream_end *ret_end)
{
	int saved_errno = errno;

	*ret_end = (struct stream_end){.ticket = 0};
	/* relaxed: as in gate_is_open(); without streams there is nothing to find */
	if (atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_OFF ||
		!meters_have_region())
		return;
	backlog_stream_ends(stream);
	streams_end_begins(stream, ret_end);
	errno = saved_errno;
}

void gate_stream_ended(const struct stream_end *end, CUresult result)
{
	int saved_errno = errno;

	streams_end_ends(end, result == CUDA_SUCCESS);
	errno = saved_errno;
}

void gate_stream_made(CUstream stream)
{
	int saved_errno = errno;

	/* relaxed: as in gate_stream_ends() */
	if (atomic_load_explicit(&gate_mode, memory_order_relaxed) != GATE_OFF &&
		meters_have_region()) {
		backlog_stream_made(stream);
		streams_made(stream);
	}
	errno = saved_errno;
}

void gate_capture_begins(CUstream stream)
{
	int saved_errno = errno;
	struct stream_state *s = is_on(clock_ticks()) ? streams_enter_if_known(stream) : NULL;

	if (s) {
		stream_state_end_open(s, clock_now_ns());
		streams_leave(s);
	}
	if (meters_have_region() && !capture_may_be_on())
		EACH_METER(m)
		{
			LOCK_SCOPE(&m->lock);
			streams_capture_begins(m, clock_now_ns());
		}
	errno = saved_errno;
}

void gate_context_ends(CUcontext context)
{
	int saved_errno = errno;

	/* relaxed: as in gate_stream_ends() */
	if (atomic_load_explicit(&gate_mode, memory_order_relaxed) != GATE_OFF)
		streams_context_ends(context);
	errno = saved_errno;
}

void gate_context_ended(struct device *device, CUcontext context)
{
	uint64_t now_ns = clock_now_ns();

	(void)device; /* the streams know which it was */
	backlog_context_ended(context);
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		streams_context_ended(m, context, now_ns);
		turns_note_done(m, now_ns);
	}
}

void gate_green_ends(CUcontext context, CUcontext primary, bool is_gone)
{
	int saved_errno = errno;
	uint64_t now_ns = clock_now_ns();

	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		streams_green_ends(m, context, primary, is_gone, now_ns);
	}
	errno = saved_errno;
}

void gate_reset_after_fork(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&gate_mode, GATE_OFF, memory_order_relaxed);
	atomic_store_explicit(&has_context, false, memory_order_relaxed);
	limits_reset_after_fork();
	own_thread_reset_after_fork();
	stream_ends_reset_after_fork();
	backlog_reset_after_fork();
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		struct meter *m = &meters[i];

		m->lock = (struct lock)LOCK_INIT;
		if (!m->is_ready)
			continue;
		turn_reset_after_fork(&m->turns.turn);
		streams_reset_after_fork(&m->streams);
		memset(m, 0, offsetof(struct meter, streams));
	}
}
