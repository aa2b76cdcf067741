/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a meter, all of them at once. */
#include "tenant/compute/streams.h"

#include <string.h>

#include "policy/throttle.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/stream_thread.h"
#include "tenant/compute/unknowns.h"
#include "tenant/driver/capture.h"

/* What it gave its own streams goes on. */
static void thread_ends(const void *thread)
{
	EACH_METER(m)
	{
		LOCK_SCOPE(&m->lock);
		for (unsigned i = 0; i < m->streams.high; i++) {
			struct stream_state *s = &m->streams.at[i];

			s->is_left |= s->is_used && s->has_stream && s->thread == thread;
		}
	}
}

const void *streams_own_thread(void)
{
	return stream_thread(thread_ends);
}

bool streams_is_in(const struct stream_state *s, CUcontext context)
{
	return s->is_used && s->has_stream && s->context == context;
}

void streams_collect(struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		if (UNLIKELY(m->streams.at[i].is_left))
			stream_state_lose_thread(&m->streams.at[i], now_ns);
		stream_state_collect(&m->streams.at[i], now_ns);
	}
	unknowns_end(m, now_ns);
}

void streams_break(struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (s->is_used && !s->is_shared)
			stream_state_break(s, now_ns);
	}
}

uint64_t streams_begin_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t earliest = 0, begin_ns;

	for (unsigned i = 0; i < m->streams.high; i++) {
		begin_ns = stream_state_begin_ns(&m->streams.at[i], now_ns);
		if (begin_ns && (!earliest || begin_ns < earliest))
			earliest = begin_ns;
	}
	return earliest;
}

uint64_t streams_end_ns(const struct meter *m)
{
	uint64_t latest = 0;

	for (unsigned i = 0; i < m->streams.high; i++) {
		const struct stream_state *s = &m->streams.at[i];

		if (s->is_used && (s->pending || s->is_open) && s->drained_ns > latest)
			latest = s->drained_ns;
	}
	return latest;
}

uint64_t streams_last_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t latest = 0;

	for (unsigned i = 0; i < m->streams.high; i++) {
		const struct stream_state *s = &m->streams.at[i];

		if (s->is_used && (s->users || stream_state_has_calls(s)))
			return now_ns;
		if (s->is_used && s->last_ns > latest)
			latest = s->last_ns;
	}
	return latest;
}

uint64_t streams_others_ahead_ns(const struct stream_state *work, uint64_t now_ns)
{
	const struct streams *streams = &work->meter->streams;
	uint64_t sum_ns = 0;

	for (unsigned i = 0; i < streams->high; i++) {
		const struct stream_state *s = &streams->at[i];

		if (s != work && s->is_used && (s->pending || s->is_open) && s->drained_ns > now_ns)
			sum_ns += s->drained_ns - now_ns;
	}
	return sum_ns;
}

static bool is_default(const struct stream_state *s)
{
	return !s->stream || s->stream == CU_STREAM_LEGACY;
}

static bool wait_for_each_other(const struct stream_state *a, const struct stream_state *b)
{
	return b->is_used && b->has_stream && a->context == b->context &&
	       ((is_default(a) && b->is_blocking) || (is_default(b) && a->is_blocking));
}

void streams_pass(struct stream_state *s, unsigned breaks_most, uint64_t patience_ns)
{
	struct streams *streams = &s->meter->streams;

	stream_state_pass(s, breaks_most, patience_ns);
	for (unsigned i = 0; i < streams->high; i++)
		if (wait_for_each_other(s, &streams->at[i]))
			stream_state_pass(&streams->at[i], breaks_most, patience_ns);
}

bool streams_is_reachable(const struct stream_state *s)
{
	return !s->thread && s->stream && s->stream != CU_STREAM_LEGACY;
}

/*
 * An open batch has no event that would tell of its end: a wait for it does, or, where none can be recorded, only time.
 */
static bool is_idle(const struct stream_state *s, uint64_t now_ns)
{
	if (s->pending)
		return false;
	return !s->is_open || (s->is_waited_for && now_ns >= s->drained_ns) ||
	       (!streams_is_reachable(s) && now_ns >= s->drained_ns + THROTTLE_LATE_NS);
}

bool streams_are_idle(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (!is_idle(&m->streams.at[i], now_ns))
			return false;
	return true;
}

bool streams_are_others_idle(const struct stream_state *s, uint64_t now_ns)
{
	const struct streams *streams = &s->meter->streams;

	for (unsigned i = 0; i < streams->high; i++)
		if (streams->at[i].is_used && streams->at[i].context != s->context &&
			!is_idle(&streams->at[i], now_ns))
			return false;
	return true;
}

bool streams_is_alone(const struct stream_state *s, uint64_t now_ns)
{
	const struct streams *streams = &s->meter->streams;

	for (unsigned i = 0; i < streams->high; i++)
		if (&streams->at[i] != s && !is_idle(&streams->at[i], now_ns))
			return false;
	return true;
}

bool streams_are_at_rest(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (!is_idle(&m->streams.at[i], now_ns) &&
			!stream_state_is_held_up(&m->streams.at[i]))
			return false;
	return true;
}

bool streams_drain(struct meter *m, uint64_t now_ns)
{
	bool are_idle = true;

	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (is_idle(s, now_ns))
			continue;
		are_idle = false;
		if (s->is_open && streams_is_reachable(s))
			stream_state_close(s);
	}
	return are_idle;
}

/* Whether that is to be found out: it was given a while ago. */
static bool is_long_untold(const struct stream_state *s, uint64_t pause_ns, uint64_t now_ns)
{
	return stream_state_is_untold(s) && now_ns > s->last_ns + pause_ns &&
	       !capture_is_on(s->stream);
}

/*
 * Charges such work as estimated where it is done, and else puts an event behind it. False where
 * nobody can from here.
 */
static bool end_untold(struct stream_state *s, uint64_t now_ns)
{
	if (!s->thread && stream_state_is_done(s))
		stream_state_give_up(s, now_ns);
	else if (streams_is_reachable(s))
		stream_state_close(s);
	else
		return false;
	return true;
}

void streams_note_others(const struct stream_state *work, uint64_t now_ns)
{
	struct streams *streams = &work->meter->streams;

	for (unsigned i = 0; i < streams->high; i++) {
		struct stream_state *s = &streams->at[i];

		if (s != work && !s->thread && is_long_untold(s, STREAM_PAUSE_NS, now_ns))
			end_untold(s, now_ns);
	}
}

void streams_end_in_context(struct stream_state *s, bool *is_busy, uint64_t now_ns)
{
	if (!stream_state_is_untold(s))
		return;
	if (stream_state_close_in_context(s, *is_busy))
		stream_state_give_up(s, now_ns);
	else
		*is_busy |= !s->is_open;
}

void streams_note_silent(struct meter *m, uint64_t pause_ns, uint64_t now_ns)
{
	bool is_busy;

	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		s->is_unseen = false;
		if (!s->is_used || !is_long_untold(s, pause_ns, now_ns) || end_untold(s, now_ns))
			continue;
		is_busy = false;
		streams_end_in_context(s, &is_busy, now_ns);
		s->is_unseen = s->is_open && events_know_contexts() && capture_may_be_on();
	}
}

void streams_capture_begins(struct meter *m, uint64_t now_ns)
{
	bool is_busy;

	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (!s->is_used || streams_is_reachable(s))
			continue;
		is_busy = false;
		streams_end_in_context(s, &is_busy, now_ns);
		/* An older driver has no such events. */
		if (stream_state_is_untold(s) && stream_state_can_be_asked(s))
			stream_state_end_open(s, now_ns);
	}
}

void streams_close_all(struct meter *m)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (stream_state_is_untold(s) && stream_state_can_be_asked(s) &&
			!capture_is_on(s->stream))
			stream_state_close(s);
	}
}

bool streams_have_backlog(const struct meter *m)
{
	for (unsigned i = 0; i < m->streams.high; i++)
		if (stream_state_has_backlog(&m->streams.at[i]))
			return true;
	return false;
}

uint64_t streams_backlog_until_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t until_ns = m->limits.unmetered_until_ns + STREAMS_BACKLOG_NS;

	return now_ns < until_ns && streams_have_backlog(m) ? until_ns : 0;
}

void streams_reset_after_fork(struct streams *streams)
{
	uint32_t uses[STREAMS_ALL];

	/* This thread, too, remembers one of the parent's. */
	for (unsigned i = 0; i < STREAMS_ALL; i++)
		uses[i] = streams->at[i].use + 1;
	memset(streams, 0, sizeof(*streams));
	for (unsigned i = 0; i < STREAMS_ALL; i++)
		streams->at[i].use = uses[i];
}
