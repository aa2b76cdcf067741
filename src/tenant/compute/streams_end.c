/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of streams.
 *
 * A call of another thread may be giving work to one meanwhile, and the driver may have given its handle to the next one before anybody
 * looks. So what a stream was given stays with its state, which is not looked for by the handle any more.
 */
#include "tenant/compute/streams_end.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/streams_find.h"

/* The state of a stream that is ended; must_go: only one that was found meanwhile. NULL: there is none (any more). */
static struct stream_state *find_state(struct meter *m, CUstream stream, bool must_go)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (s->is_used && s->has_stream && s->stream == stream && (!must_go || s->is_going))
			return s;
	}
	return NULL;
}

/* Longest wait for calls of other threads that give work to a stream which is ended. What comes later is found late. */
#define CALLS_WAIT_NS UINT64_C(5000000)
#define CALLS_REST_NS 50000

/* With the meter's lock, which it leaves meanwhile. */
static void wait_for_calls(struct stream_state *s)
{
	const struct timespec rest = {.tv_nsec = CALLS_REST_NS};
	uint64_t until_ns = clock_now_ns() + CALLS_WAIT_NS;

	s->users++;
	while (stream_state_has_calls(s) && s->has_stream && clock_now_ns() < until_ns) {
		lock_leave(&s->meter->lock);
		nanosleep(&rest, NULL);
		lock_enter(&s->meter->lock);
	}
	s->users--;
}

/* With the meter's lock. */
static void end_in(struct meter *m, CUstream stream)
{
	struct stream_state *s = find_state(m, stream, false);

	if (!s)
		return;
	wait_for_calls(s);
	FAULT("gate: stream ends");
	while ((s = find_state(m, stream, false)))
		stream_state_lose_stream(s, true, clock_now_ns());
}

void streams_end_begins(CUstream stream, struct stream_end *ret_end)
{
	*ret_end = (struct stream_end){.ticket = 0};
	if (streams_is_of_context(stream))
		return;
	stream_ends_note(stream, ret_end);
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		end_in(m, stream);
	}
}

/* The driver knows it no more, whatever is of its handle: nothing is asked by that. */
static void lose_all(struct meter *m, CUstream stream, bool must_go)
{
	struct stream_state *s;

	while ((s = find_state(m, stream, must_go)))
		stream_state_lose_stream(s, false, clock_now_ns());
}

void streams_end_ends(const struct stream_end *end, bool is_ended)
{
	if (!end->ticket)
		return;
	stream_ends_forget(end);
	if (!is_ended)
		return;
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		lose_all(m, end->stream, true);
	}
}

/* Work that is on its way to the one which is gone may come to this one. */
static void note_again(struct meter *m, CUstream stream)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (s->is_used && !s->has_stream && s->stream == stream &&
			(s->users || stream_state_has_calls(s)))
			s->is_again = true;
	}
}

void streams_made(CUstream stream)
{
	stream_ends_forget_handle(stream);
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		lose_all(m, stream, false);
		note_again(m, stream);
	}
}

void streams_context_ends(CUcontext context)
{
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		for (unsigned i = 0; i < m->streams.high; i++) {
			struct stream_state *s = &m->streams.at[i];

			if (!streams_is_in(s, context))
				continue;
			stream_state_collect(s, clock_now_ns());
			/* When it ended is known. */
			if (s->is_waited_for && !s->pending)
				stream_state_break(s, clock_now_ns());
		}
	}
}

void streams_green_ends(
	struct meter *m, CUcontext context, CUcontext primary, bool is_gone, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];
		bool is_known = !is_gone && stream_state_can_be_asked(s);

		if (!s->is_used || s->context != context)
			continue;
		/* A thread's own stream is the primary context's as well. */
		if (!is_known && primary)
			s->context = primary;
		if (s->has_stream)
			stream_state_lose_stream(s, is_known, now_ns);
	}
}

void streams_context_ended(struct meter *m, CUcontext context, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (m->streams.at[i].is_used && m->streams.at[i].context == context)
			stream_state_lose_context(&m->streams.at[i], now_ns);
	for (unsigned i = 0; i < STREAMS_CONTEXTS; i++)
		if (m->streams.timebases[i].context == context)
			m->streams.timebases[i] = (struct timebase){.context = NULL};
}
