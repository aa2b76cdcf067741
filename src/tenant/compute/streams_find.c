/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the state of a stream is found.
 *
 * A stream's handle tells it apart, except those that stand for a stream of the context or of the
 * thread. Each thread remembers the last one that it used, with the count of that state's uses: whoever gives a
 * state to another stream counts on, under the meter's lock. A call that leaves the lock and comes back to its
 * state keeps it meanwhile (`users`), and so does one that gives work (`calls`): the stream's handle may be another
 * stream's by then, or nobody's.
 */
#include "tenant/compute/streams_find.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "policy/throttle.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"

struct recent {
	CUstream stream;
	CUcontext context;
	struct meter *meter;
	struct stream_state *state;
	uint32_t use;
};
static __thread struct recent recent;

static const void *thread_of(CUstream stream)
{
	return stream == CU_STREAM_PER_THREAD ? streams_own_thread() : NULL;
}

static bool is_state_of(
	const struct stream_state *s, CUstream stream, CUcontext context, const void *thread)
{
	return s->is_used && s->has_stream && s->stream == stream && s->thread == thread &&
	       (!streams_is_of_context(stream) || s->context == context);
}

/* Nobody comes back to a stream that has been idle for so long, or it is found anew at little cost. */
#define IDLE_NS	 10000000u

#define PLACE_NS 200000 /* between two looks for a place */

static bool is_free(const struct stream_state *s, uint64_t idle_ns, uint64_t now_ns)
{
	if (!s->is_used)
		return true;
	/* What drains an open batch is an estimate. */
	return !s->users && !stream_state_has_calls(s) && stream_state_is_drained(s, now_ns) &&
	       (!s->has_stream ||
		       (s->last_ns + idle_ns < now_ns && (!s->is_open || stream_state_is_done(s))));
}

static bool has_state(const struct meter *m, CUcontext context)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (m->streams.at[i].is_used && m->streams.at[i].context == context)
			return true;
	return false;
}

static struct stream_state *take_idle(
	struct meter *m, unsigned first, unsigned places, uint64_t idle_ns, uint64_t now_ns)
{
	for (unsigned i = first; i < places; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (!is_free(s, idle_ns, now_ns))
			continue;
		if (s->is_used) {
			stream_state_give_up(s, now_ns);
			stream_state_free(s);
		}
		if (i >= m->streams.high)
			m->streams.high = i + 1;
		return s;
	}
	return NULL;
}

/* With the meter's lock: a stream state for another stream, or NULL. */
static struct stream_state *take_state(struct meter *m, CUcontext context, uint64_t now_ns)
{
	unsigned places = STREAMS_MAX - (has_state(m, context) ? STREAMS_SPARE : 0);
	struct stream_state *s;

	streams_collect(m, now_ns);
	s = take_idle(m, 0, places, IDLE_NS, now_ns);
	if (!s)
		s = take_idle(m, 0, places, 0, now_ns);
	/* Other threads' streams are not seen idle from here. */
	if (!s)
		streams_note_silent(m, STREAM_PAUSE_NS, now_ns);
	return s;
}

static bool is_timebase_used(const struct meter *m, const struct timebase *base)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (m->streams.at[i].timebase == base)
			return true;
	return false;
}

/* NULL for contexts beyond the places, whose spans are placed nowhere. A green context's place is used again. */
static struct timebase *timebase_of(struct meter *m, CUcontext context)
{
	struct timebase *unused = NULL;

	for (unsigned i = 0; i < STREAMS_CONTEXTS; i++) {
		struct timebase *b = &m->streams.timebases[i];

		if (b->context == context)
			return b;
		if (!unused && (!b->context || !is_timebase_used(m, b)))
			unused = b;
	}
	if (!unused)
		return NULL;
	if (unused->base)
		own_events_destroy(unused->base);
	*unused = (struct timebase){.context = context};
	return unused;
}

/* The default stream itself waits for all that wait for it. */
static bool is_blocking(CUstream stream)
{
	unsigned flags;

	return !streams_is_of_context(stream) && cuda.cuStreamGetFlags &&
	       cuda.cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
	       !(flags & CU_STREAM_NON_BLOCKING);
}

static void give_state(struct stream_state *s, struct meter *m, CUstream stream, CUcontext context,
	const void *thread)
{
	s->is_used = true;
	s->has_stream = true;
	s->is_blocking = is_blocking(stream);
	s->is_going = !streams_is_of_context(stream) && stream_ends_has(stream);
	s->is_again = false;
	s->is_left = false;
	s->stream = stream;
	s->context = context;
	s->thread = thread;
	s->meter = m;
	s->timebase = context ? timebase_of(m, context) : NULL;
}

/* Whether events tell of all that the stream was given. */
static bool is_told(struct stream_state *s)
{
	if (s->is_open && streams_is_reachable(s) && !capture_is_on(s->stream))
		stream_state_end_open(s, clock_now_ns());
	if (s->is_open || s->has_no_events)
		return false;
	for (unsigned i = 0; i < s->pending; i++)
		if (!s->batches[(s->first + i) % STREAM_BATCHES].is_timed)
			return false;
	return true;
}

/*
 * More streams work at the same time than can be told apart: one gives its state away. Events tell of the work that it
 * was given, and none of them is of another context. NULL: none can.
 */
static struct stream_state *take_over(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	unsigned from = (unsigned)(hash_u64((uintptr_t)stream) % STREAMS_ALL);

	for (unsigned i = 0; i < STREAMS_ALL; i++) {
		struct stream_state *s = &m->streams.at[(from + i) % STREAMS_ALL];

		if (!s->is_used || s->users || stream_state_has_calls(s) || s->context != context ||
			s->pending == STREAM_PENDING || !is_told(s))
			continue;
		s->is_chained = false;
		s->use++;
		give_state(s, m, stream, context, thread);
		return s;
	}
	return NULL;
}

/* With the meter's lock: for a stream that has waited long. What the others wait for may be what it is about to give. */
static struct stream_state *take_late(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	struct stream_state *s = take_idle(m, STREAMS_MAX, STREAMS_ALL, 0, clock_now_ns());

	if (!s) {
		s = &m->streams.at[STREAMS_ALL - 1];
		stream_state_share(s);
		return s;
	}
	stream_state_clear(s);
	give_state(s, m, stream, context, thread);
	return s;
}

/* With the meter's lock; NULL where there is no place. */
static struct stream_state *find_in(
	struct meter *m, CUstream stream, CUcontext context, const void *thread)
{
	struct stream_state *s;

	for (unsigned i = 0; i < m->streams.high; i++)
		if (is_state_of(&m->streams.at[i], stream, context, thread))
			return &m->streams.at[i];
	s = take_state(m, context, clock_now_ns());
	FAULT("gate: stream state taken");
	if (!s)
		return take_over(m, stream, context, thread);
	stream_state_clear(s);
	give_state(s, m, stream, context, thread);
	return s;
}

/* One of a device with a limit, if there is any; NULL: there is no meter at all. */
static struct meter *any_meter(void)
{
	struct meter *any = NULL;

	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		if (!any || m->limits.is_limited)
			any = m;
	}
	return any;
}

/*
 * The meter of the device that a context is of; where the driver does not say which, another's: what is metered by
 * nothing would be free.
 */
struct meter *streams_meter_of(CUcontext context)
{
	bool is_entered = current_enter(context);
	struct device *device;
	CUresult r = state_current_device(&device);

	current_leave(is_entered);
	return r == CUDA_SUCCESS ? meter_of(device) : any_meter();
}

/* False where there is none, and the driver will say so itself. NULL where it does not answer. */
static bool find_current(CUcontext *ret_context)
{
	if (cuda.cuCtxGetCurrent && cuda.cuCtxGetCurrent(ret_context) == CUDA_SUCCESS)
		return *ret_context;
	*ret_context = NULL;
	return true;
}

/* The stream decides about context and device, whichever is current. */
static bool find_context(CUstream stream, CUcontext *ret_context)
{
	*ret_context = events_context_of(stream);
	return *ret_context || find_current(ret_context);
}

/*
 * The places are in use as long as work lies in their streams, and a launch that nothing meters would be free. Work that does
 * not end may wait for this one.
 */
static struct stream_state *find_or_wait(
	struct meter *m, CUstream stream, CUcontext context, const void *thread, bool may_wait)
{
	const struct timespec rest = {.tv_nsec = PLACE_NS};
	uint64_t since_ns = 0;
	struct stream_state *s;

	for (;;) {
		lock_enter(&m->lock);
		s = find_in(m, stream, context, thread);
		if (!s && may_wait &&
			throttle_is_stuck(THROTTLE_TOO_FAR, 0, 0, clock_now_ns(), &since_ns))
			s = take_late(m, stream, context, thread);
		if (s)
			return s;
		lock_leave(&m->lock);
		if (!may_wait)
			return NULL;
		nanosleep(&rest, NULL);
	}
}

static struct stream_state *enter_slowly(CUstream stream, CUcontext context, bool may_wait)
{
	const void *thread = thread_of(stream);
	struct stream_state *s;
	struct meter *m;

	if (!context && !find_context(stream, &context))
		return NULL;
	m = streams_meter_of(context);
	if (!m)
		return NULL;
	s = find_or_wait(m, stream, context, thread, may_wait);
	if (s)
		recent = (struct recent){stream, context, m, s, s->use};
	return s;
}

static struct stream_state *enter(CUstream stream, bool may_wait)
{
	CUcontext context = NULL;

	if (streams_is_of_context(stream) && !find_current(&context))
		return NULL;
	if (LIKELY(recent.state && recent.stream == stream &&
		    (!context || recent.context == context))) {
		lock_enter(&recent.meter->lock);
		if (LIKELY(recent.state->use == recent.use))
			return recent.state;
		lock_leave(&recent.meter->lock);
	}
	return enter_slowly(stream, context, may_wait);
}

struct stream_state *streams_enter(CUstream stream)
{
	return enter(stream, true);
}

struct stream_state *streams_enter_if_known(CUstream stream)
{
	return enter(stream, false);
}

struct stream_state *streams_enter_on(struct device *device, CUstream stream, bool may_wait)
{
	CUcontext context;

	return find_context(stream, &context) ? find_or_wait(meter_of(device), stream, context,
							thread_of(stream), may_wait)
					      : NULL;
}

int streams_ordinal(CUstream stream)
{
	struct meter *m = NULL;
	CUcontext context;

	if (find_context(stream, &context))
		m = streams_meter_of(context);
	return m ? m->device->ordinal : -1;
}

void streams_leave(struct stream_state *s)
{
	lock_leave(&s->meter->lock);
}

struct stream_state *streams_recent(const struct meter *m)
{
	struct stream_state *s = recent.state;

	return s && recent.meter == m && recent.use == s->use ? s : NULL;
}

void streams_note_backlog(struct meter *m, CUstream stream, CUcontext context)
{
	uint64_t since_ns = m->limits.unmetered_until_ns;
	struct stream_state *s;

	if (events_is_idle(context, stream))
		return;
	s = find_in(m, stream, context, NULL);
	if (s)
		stream_state_note_backlog(
			s, since_ns, since_ns + STREAMS_BACKLOG_NS, clock_now_ns());
}

bool streams_note_context_backlog(struct meter *m, CUcontext context)
{
	uint64_t since_ns = m->limits.unmetered_until_ns, now_ns = clock_now_ns();
	struct stream_state *s = take_state(m, context, now_ns);

	if (!s)
		return false;
	stream_state_clear(s);
	give_state(s, m, NULL, context, NULL);
	return stream_state_hold_backlog(s, since_ns, since_ns + STREAMS_BACKLOG_NS, now_ns);
}
