/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream's batches are charged.
 *
 * Times of events are carried to the host's clock, so that spans of several streams and processes can be
 * compared: the start of a batch in an idle stream is known to some microseconds, and each event from there
 * on by its distance to the one before (the two clocks differ by 2 ppm, H200).
 */
#include "tenant/compute/stream_charge.h"

#include "tenant/compute/doubts.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/overruns.h"
#include "tenant/compute/unknowns.h"

/* A kernel that is given to an idle device begins about 2 us after the call (H200, driver 580). */
#define WORK_LATENCY_NS 2000

/* A launch takes some us. A call that took longer has waited, perhaps for its own work: all of CUDA_LAUNCH_BLOCKING's do. */
#define LAUNCH_MAX_NS 10000u

/* Work is charged as it runs, in steps of so much; what takes less is charged when it ends. */
#define RUNNING_NS UINT64_C(100000000)
#define SHARED_NS  UINT64_C(10000000)

/* So many streams in which calls do not come back do not hold their process back. */
#define KEPT_MOST 4

void stream_charge_span(struct stream_state *s, const struct span *span, uint64_t now_ns)
{
	uint64_t hidden_ns = span_charge(s->meter, span, now_ns);

	if (hidden_ns)
		doubts_note_hidden(s->meter->books, hidden_ns, now_ns);
}

/* When the batch began, as timebase_place() tells; a chained one began where the one before it ended. */
static void place_start(struct stream_state *s, struct batch *b, uint64_t *ret_ns)
{
	struct batch *last = stream_state_before(s, b);

	b->is_placed = !b->has_start && last->is_placed && !timebase_unsure_ns(s->timebase);
	if (b->has_start)
		b->is_placed = timebase_place(
			s->timebase, b->start, b->start_ns + STREAM_EVENT_NS, ret_ns);
	else if (b->is_placed)
		*ret_ns = last->end_ns;
	else
		b->is_placed = timebase_place(s->timebase, last->end,
			timebase_unsure_ns(s->timebase) ? last->start_ns : last->end_ns, ret_ns);
}

/*
 * The batch's first work began then at the soonest: its start event was there before. Where the call took longer than what is left of the work behind it, as
 * all of CUDA_LAUNCH_BLOCKING's do, the work began within the call.
 */
static uint64_t soonest_ns(const struct batch *b)
{
	uint64_t call_ns = b->given_ns > b->called_ns ? b->given_ns - b->called_ns : 0;

	if (call_ns && b->end_ns <= b->given_ns)
		return b->called_ns;
	return WORK_LATENCY_NS +
	       (call_ns && call_ns <= LAUNCH_MAX_NS && b->end_ns > b->given_ns + call_ns
			       ? b->given_ns
			       : b->called_ns);
}

/* Where the batch began and how long it took, by its events; false where they do not tell. */
static bool measure(struct stream_state *s, struct batch *b, uint64_t now_ns, struct span *ret_span)
{
	uint64_t start_ns, twice_ns = 0, placed_ns;
	int64_t took_ns;

	if (!events_distance(
		    b->has_start ? b->start : stream_state_before(s, b)->end, b->end, &took_ns) ||
		took_ns < 0)
		return false;
	/* That the end is seen now tells more of the base than that the start is. */
	if (timebase_unsure_ns(s->timebase))
		(void)timebase_place(s->timebase, b->end, b->start_ns, &start_ns);
	place_start(s, b, &start_ns);
	b->end_ns = start_ns + (uint64_t)took_ns;
	if (b->end_ns > now_ns) {
		/* The base is too late. */
		(void)timebase_place(s->timebase, b->end, b->start_ns, &placed_ns);
		start_ns -= b->end_ns - now_ns;
		b->end_ns = now_ns;
		/* So was the batch before it: of what they would cover twice each is charged. */
		if (!b->has_start && stream_state_before(s, b)->end_ns > start_ns)
			twice_ns = stream_state_before(s, b)->end_ns - start_ns;
	}
	if (b->has_start)
		start_ns = max_u64(start_ns, soonest_ns(b));
	ret_span->start_ns = start_ns < b->end_ns ? start_ns : b->end_ns;
	ret_span->end_ns = b->end_ns;
	ret_span->is_placed = b->is_placed;
	ret_span->unsure_ns = max_u64(timebase_unsure_ns(s->timebase), twice_ns);
	ret_span->is_measured = true;
	return true;
}

/* The rest of the work is expected after what was just seen to end. */
static void anchor(struct stream_state *s, uint64_t end_ns)
{
	s->drained_ns = end_ns;
	for (unsigned i = 0; i < s->pending + s->is_open; i++)
		s->drained_ns += s->batches[(s->first + i) % STREAM_BATCHES].expected_ns;
}

/* Whether the batch is known to have begun, and when. */
static bool has_begun(struct stream_state *s, struct batch *b, uint64_t *ret_ns)
{
	*ret_ns = b->start_ns;
	if (!b->is_timed)
		return true;
	if (b->has_start && events_query(b->start) != CUDA_SUCCESS)
		return false;
	place_start(s, b, ret_ns);
	return true;
}

/* Charges what runs for long as it runs; what it was reserved for is charged when it ends. */
static void charge_running(struct stream_state *s, struct batch *b, uint64_t now_ns)
{
	uint64_t from_ns;

	if (now_ns < b->start_ns + RUNNING_NS || now_ns < b->paid_ns + RUNNING_NS ||
		!has_begun(s, b, &from_ns))
		return;
	b->ran_on_ns = overruns_note_while(s->meter, from_ns, b->is_behind ? 0 : b->expected_ns,
		b->launches, b->ran_on_ns, now_ns);
	from_ns = max_u64(from_ns, b->paid_ns);
	if (now_ns < from_ns + RUNNING_NS)
		return;
	b->running_ns += span_charge_running(s->meter, from_ns, now_ns,
		!b->is_placed	? UINT64_MAX
		: b->is_backlog ? 0
				: timebase_unsure_ns(s->timebase));
	b->paid_ns = now_ns;
}

/* When a batch ended that is done, where an event was recorded behind it; false where that does not tell. */
static bool place_end(struct stream_state *s, struct batch *b, struct span *span)
{
	uint64_t end_ns;

	if (!b->has_end || !timebase_place(s->timebase, b->end, b->start_ns, &end_ns))
		return false;
	if (span->end_ns > end_ns)
		span->end_ns = end_ns;
	b->end_ns = span->end_ns;
	b->is_placed = true;
	return true;
}

/*
 * Charges by the clock what may never be seen to end: what several streams have, what a stream had that is gone, and what was given before work was
 * metered. Of the latter all at once are charged once.
 */
static void charge_unseen(struct stream_state *s, struct batch *b, uint64_t now_ns)
{
	uint64_t from_ns = max_u64(b->paid_ns, b->start_ns);

	if (now_ns < from_ns + SHARED_NS)
		return;
	stream_charge_span(s,
		&(struct span){.start_ns = from_ns,
			.end_ns = now_ns,
			.is_placed = !s->is_shared,
			.reserved_ns = b->reserved_ns,
			.running_ns = b->running_ns,
			.expected_ns = b->is_backlog ? now_ns - from_ns : 0,
			.mix = b->mix},
		now_ns);
	if (b->is_backlog)
		overruns_note_backlog(s->meter, from_ns, b->start_ns + b->expected_ns, now_ns);
	b->reserved_ns = 0;
	b->running_ns = 0;
	b->paid_ns = now_ns;
}

/* The batch's work, which ran from then to then. */
static struct span span_of(const struct batch *b, uint64_t start_ns, uint64_t end_ns)
{
	return (struct span){.start_ns = start_ns,
		.end_ns = end_ns,
		.reserved_ns = b->reserved_ns,
		.queued_ns = b->queued_ns,
		.running_ns = b->running_ns,
		.paid_ns = b->paid_ns,
		.expected_ns = b->expected_ns,
		.ran_on_ns = b->ran_on_ns,
		.is_drawn = b->is_drawn,
		.is_behind = b->is_behind,
		.mix = b->mix};
}

/* It was not on the device yet, and for so long nobody else could be, as the turn was taken for it. */
static void charge_kept_turn(
	struct stream_state *s, const struct batch *b, uint64_t begun_ns, uint64_t now_ns)
{
	uint64_t end_ns = min_u64(begun_ns, b->kept_until_ns);

	if (b->is_behind && end_ns > b->start_ns)
		stream_charge_span(s,
			&(struct span){.start_ns = b->start_ns,
				.end_ns = end_ns,
				.paid_ns = b->start_ns,
				.is_placed = true},
			now_ns);
}

/* Charges the oldest closed batch, if it is done. Where events do not tell, it ends when its stream is seen idle. */
static bool collect_one(struct stream_state *s, uint64_t now_ns)
{
	struct batch *b = &s->batches[s->first];
	uint64_t end_ns = now_ns > b->start_ns ? now_ns : b->start_ns;
	struct span span = span_of(b, b->start_ns, end_ns);
	CUresult r = CUDA_SUCCESS;

	span.is_first = b->has_start;
	span.is_placed = b->is_backlog;
	if (s->is_shared) {
		charge_unseen(s, b, now_ns);
		return false;
	}
	/* It was not when its stream went, as a capture was under way. */
	if (!b->has_end && !(s->has_stream && stream_state_can_be_asked(s)))
		b->has_end = events_record_in_context(s->context, &b->end);
	if (b->has_end)
		r = events_query(b->end);
	/* An error says nothing of the work. */
	if ((!b->has_end || (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)) &&
		!stream_state_is_done(s))
		r = CUDA_ERROR_NOT_READY;
	if (r == CUDA_ERROR_NOT_READY) {
		if (!b->is_backlog && (b->has_end || s->has_stream))
			charge_running(s, b, now_ns);
		else
			charge_unseen(s, b, now_ns);
		return false;
	}
	if ((r != CUDA_SUCCESS || !b->is_timed || !measure(s, b, now_ns, &span)) &&
		(r != CUDA_SUCCESS || !place_end(s, b, &span))) {
		b->end_ns = span.end_ns;
		b->is_placed = false;
		s->is_chained = s->is_chained && s->pending > 1;
	}
	s->first = (s->first + 1) % STREAM_BATCHES;
	s->pending--;
	if (b->is_unknown)
		unknowns_note_end(s->meter, now_ns);
	anchor(s, b->end_ns);
	charge_kept_turn(s, b, span.start_ns, now_ns);
	stream_charge_span(s, &span, now_ns);
	return true;
}

/* When the last call was let in, or gave its work. */
static uint64_t called_ns(const struct stream_state *s)
{
	return max_u64(s->let_in_ns, s->last_ns);
}

/* Whether nothing will tell when the open batch, or what is about to come to it, ends. */
static bool is_dark(const struct stream_state *s)
{
	return stream_state_has_calls(s) || (s->is_unseen && stream_state_is_untold(s));
}

/* Whether that is so for long: a call that has given the stream's last work does not come back. */
static bool is_kept(const struct stream_state *s, uint64_t now_ns)
{
	return s->is_used && !s->is_shared && now_ns >= called_ns(s) + RUNNING_NS && is_dark(s) &&
	       (s->has_stream || !events_is_dead(s->context));
}

static bool are_many_kept(const struct meter *m, uint64_t now_ns)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->streams.high; i++)
		count += is_kept(&m->streams.at[i], now_ns);
	return count > KEPT_MOST;
}

/*
 * What such a call gives may reach the driver at any moment, or be done: nothing but the clock tells of it. A few may wait for what the program is
 * about to give, as any work that runs.
 */
static void charge_kept(struct stream_state *s, uint64_t now_ns)
{
	uint64_t from_ns = max_u64(s->kept_ns, called_ns(s));

	if (!stream_state_has_calls(s) && !s->is_open) {
		credit_end_running(s->meter, s->kept_running_ns, now_ns);
		s->kept_running_ns = 0;
		return;
	}
	if (now_ns < from_ns + RUNNING_NS || !is_kept(s, now_ns))
		return;
	if (are_many_kept(s->meter, now_ns))
		stream_charge_span(s,
			&(struct span){.start_ns = from_ns,
				.end_ns = now_ns,
				.paid_ns = from_ns,
				.is_placed = true},
			now_ns);
	else
		s->kept_running_ns += span_charge_running(s->meter, from_ns, now_ns, 0);
	s->kept_ns = now_ns;
}

void stream_state_collect(struct stream_state *s, uint64_t now_ns)
{
	while (s->pending && collect_one(s, now_ns))
		;
	if (UNLIKELY(s->kept_running_ns || (!s->pending && is_dark(s))))
		charge_kept(s, now_ns);
}

/* When the open batch began; behind work that was not seen to end nobody knows, and it takes what is expected. */
static uint64_t estimated_start_ns(struct stream_state *s, struct batch *b)
{
	if (s->pending)
		return s->drained_ns -
		       (b->expected_ns < s->drained_ns ? b->expected_ns : s->drained_ns);
	return s->is_chained && !b->has_start ? stream_state_before(s, b)->end_ns : s->begun_ns;
}

void stream_charge_by_estimate(struct stream_state *s, uint64_t now_ns)
{
	struct batch *b = s->batch;
	uint64_t start_ns = estimated_start_ns(s, b), placed_ns = 0;
	uint64_t took_ns = s->drained_ns > start_ns ? s->drained_ns - start_ns : 0;
	struct span span;

	stream_state_take_kept(s, b);
	if (b->is_timed && !s->pending)
		place_start(s, b, &placed_ns);
	if (placed_ns > start_ns)
		start_ns = placed_ns + took_ns < now_ns ? placed_ns : now_ns - took_ns;
	span = span_of(b, start_ns, start_ns + took_ns);
	span.is_placed = b->is_placed;
	span.unsure_ns = timebase_unsure_ns(s->timebase);
	span.is_waited_for = s->is_waited_for;
	stream_charge_span(s, &span, now_ns);
	b->reserved_ns = 0;
	b->queued_ns = 0;
	b->running_ns = 0;
	b->paid_ns = start_ns + took_ns;
}
