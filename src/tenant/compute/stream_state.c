/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream.
 *
 * Times of events are carried to the host's clock, so that spans of several streams and processes can be
 * compared: the start of a batch in an idle stream is known to some microseconds, and each event from there
 * on by its distance to the one before (the two clocks differ by 2 ppm, H200).
 */
#include "tenant/compute/stream_state.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "tenant/compute/doubts.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/overruns.h"
#include "tenant/compute/queue.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/own_events.h"

/*
 * An event that is recorded in an idle stream happens about 4 us later, and a kernel that is given to an
 * idle device begins about 2 us after the call (H200, driver 580).
 */
#define EVENT_LATENCY_NS 4000
#define WORK_LATENCY_NS	 2000

/* A launch takes some us. A call that took longer has waited, perhaps for its own work: all of CUDA_LAUNCH_BLOCKING's do. */
#define LAUNCH_MAX_NS 10000u

/* Recording takes 2 us (H200), and some more where events have to be made. */
#define RECORD_MAX_NS 50000u

/* Work is charged as it runs, in steps of so much; what takes less is charged when it ends. */
#define RUNNING_NS UINT64_C(100000000)
#define SHARED_NS  UINT64_C(10000000)

/* The clocks drift apart by 2 ppm, and the driver tells distances in a float. */
#define BASE_NS UINT64_C(10000000000)

/* Work from this length on is measured exactly before it is waited for: an event costs 1 us (H200). */
#define WORTH_AN_EVENT_NS 200000u

/* A wait that took longer ended with the work, whatever was expected; less is the call itself. */
#define BLOCKED_NS 20000u

bool stream_state_is_done(const struct stream_state *s)
{
	/* In this order: none is let in meanwhile. */
	if (s->is_shared || stream_state_has_calls(s))
		return false;
	return s->has_stream ? events_is_idle(s->context, s->stream)
			     : s->is_waited_for || events_is_dead(s->context);
}

/* Whether work given now follows what is there, with no pause between: asks the driver where in doubt. */
static bool is_continued(struct stream_state *s, uint64_t now_ns)
{
	if (now_ns <= s->last_ns + STREAM_PAUSE_NS || stream_state_has_calls(s))
		return true;
	if (!s->is_open && !s->pending && now_ns > s->drained_ns + STREAM_PAUSE_NS)
		return false;
	/* The expected end is an estimate. */
	return !stream_state_is_done(s);
}

/* Records an event, made if need be; false where the driver does not, or it would be captured. */
static bool record(struct stream_state *s, CUevent *event)
{
	enum events_answer answer;

	if (s->has_no_events || !s->has_stream)
		return false;
	answer = events_record(s->context, s->stream, event);
	s->has_no_events = answer == EVENTS_REFUSED;
	return answer == EVENTS_RECORDED;
}

static struct batch *before(struct stream_state *s, const struct batch *batch)
{
	size_t i = (size_t)(batch - s->batches);

	return &s->batches[(i + STREAM_BATCHES - 1) % STREAM_BATCHES];
}

/*
 * An event that is recorded in a stream that waits happens at a time that nobody knows: a base is only made in an idle one.
 * Beside another context's work it may be late by the driver's time slices, and only events that are seen tell how late
 * at most; one that is made when no other context of the process is at work takes its place.
 */
static void renew_base(struct stream_state *s, bool is_alone, uint64_t now_ns)
{
	struct timebase *base = s->timebase;
	bool is_good = base && base->base && now_ns < base->made_ns + BASE_NS &&
		       (!is_alone || !base->latest_ns);

	if (!base || is_good || !stream_state_is_done(s))
		return;
	now_ns = clock_now_ns();
	if (record(s, &base->base)) {
		base->made_ns = now_ns;
		base->base_ns = now_ns + EVENT_LATENCY_NS;
		base->latest_ns = is_alone ? 0 : UINT64_MAX;
	}
}

/* The next batch, which holds nothing yet. */
static struct batch *begin(struct stream_state *s)
{
	struct batch *b = &s->batches[(s->first + s->pending) % STREAM_BATCHES];

	*b = (struct batch){.start = b->start, .end = b->end};
	s->batch = b;
	s->is_open = true;
	return b;
}

void stream_state_open(struct stream_state *s, bool is_alone, uint64_t now_ns)
{
	struct batch *b = begin(s);

	/* A batch that is not chained was found to be so before, and the driver is not asked again. */
	if (s->is_chained && !is_continued(s, now_ns))
		s->is_chained = false;
	if (!s->is_chained)
		renew_base(s, is_alone, now_ns);
	b->has_start = !s->is_chained && record(s, &b->start);
	b->is_timed = b->has_start || s->is_chained;
	FAULT("stream: start recorded");
	b->start_ns = clock_now_ns();
	/* A thread that lost its processor in between does not know better than before. */
	if (b->start_ns > now_ns + RECORD_MAX_NS)
		b->start_ns = now_ns;
	if (!s->is_chained)
		s->drained_ns = now_ns;
	s->begun_ns = now_ns;
}

static void charge(struct stream_state *s, const struct span *span, uint64_t now_ns)
{
	uint64_t hidden_ns = span_charge(s->meter, span, now_ns);

	if (hidden_ns)
		doubts_note_hidden(s->meter->books, hidden_ns, now_ns);
}

/* What came into the batch after its first work. */
static void queue_up(const struct meter *m, struct batch *b)
{
	if (!b->queued_ns || b->expected_ns <= b->queued_ns)
		return;
	queue_correct(m, (int64_t)(b->expected_ns - b->queued_ns), clock_now_ns());
	b->queued_ns = b->expected_ns;
}

static void end_batch(struct stream_state *s)
{
	s->is_open = false;
	/* relaxed: see stream_state_batch() */
	atomic_store_explicit(&s->batch_count, stream_state_batch(s) + 1, memory_order_relaxed);
}

static void record_end(struct stream_state *s, struct batch *b)
{
	b->has_end = record(s, &b->end);
	b->is_timed = b->is_timed && b->has_end;
	s->is_chained = b->has_end;
	if (!b->has_end && !s->has_stream)
		b->has_end = events_record_in_context(s->context, &b->end);
}

void stream_state_close(struct stream_state *s)
{
	struct batch *b = s->batch;

	if (!s->is_open || s->pending == STREAM_PENDING)
		return;
	b->due_ns = s->drained_ns;
	queue_up(s->meter, b);
	/* Before the event: a call that comes back in between may have given its work behind that, and is late. */
	end_batch(s);
	record_end(s, b);
	s->pending++;
}

static void close_backlog(struct stream_state *s, uint64_t since_ns, uint64_t until_ns)
{
	struct batch *b = begin(s);

	b->is_backlog = b->is_placed = true;
	b->start_ns = s->begun_ns = since_ns;
	b->expected_ns = until_ns - since_ns;
	s->drained_ns = until_ns;
	stream_state_close(s);
}

void stream_state_note_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns)
{
	if (s->last_ns > since_ns || s->is_shared || stream_state_is_done(s))
		return;
	stream_state_collect(s, now_ns);
	if (s->is_open || s->pending)
		return;
	close_backlog(s, since_ns, until_ns);
}

bool stream_state_hold_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns)
{
	s->has_stream = false;
	close_backlog(s, since_ns, until_ns);
	if (!s->batches[s->first].has_end)
		s->pending = 0;
	else
		stream_state_collect(s, now_ns);
	return s->batches[s->first].has_end;
}

void stream_state_extend(struct stream_state *s)
{
	struct batch *b = &s->batches[(s->first + s->pending - 1) % STREAM_BATCHES];

	record_end(s, b);
	s->batch = b;
}

void stream_state_lose_stream(struct stream_state *s, bool is_known, uint64_t now_ns)
{
	stream_state_collect(s, now_ns);
	s->has_stream = is_known;
	stream_state_close(s);
	s->has_stream = false;
	s->is_chained = false;
	s->use++;
	for (unsigned i = 0; i < s->pending; i++) {
		struct batch *b = &s->batches[(s->first + i) % STREAM_BATCHES];

		if (!b->has_end)
			b->has_end = events_record_in_context(s->context, &b->end);
	}
}

/* When the batch began, as timebase_place() tells; a chained one began where the one before it ended. */
static void place_start(struct stream_state *s, struct batch *b, uint64_t *ret_ns)
{
	struct batch *last = before(s, b);

	b->is_placed = !b->has_start && last->is_placed && !timebase_unsure_ns(s->timebase);
	if (b->has_start)
		b->is_placed = timebase_place(
			s->timebase, b->start, b->start_ns + EVENT_LATENCY_NS, ret_ns);
	else if (b->is_placed)
		*ret_ns = last->end_ns;
	else
		b->is_placed = timebase_place(s->timebase, last->end,
			timebase_unsure_ns(s->timebase) ? last->start_ns : last->end_ns, ret_ns);
}

/* The batch's first work was given then at the soonest: its start event was there before. */
static uint64_t soonest_ns(const struct batch *b)
{
	return b->given_ns > b->called_ns && b->given_ns - b->called_ns <= LAUNCH_MAX_NS
		       ? b->given_ns
		       : b->called_ns;
}

/* Where the batch began and how long it took, by its events; false where they do not tell. */
static bool measure(struct stream_state *s, struct batch *b, uint64_t now_ns, struct span *ret_span)
{
	uint64_t start_ns;
	int64_t took_ns;

	if (!events_distance(b->has_start ? b->start : before(s, b)->end, b->end, &took_ns) ||
		took_ns < 0)
		return false;
	/* That the end is seen now tells more of the base than that the start is. */
	if (timebase_unsure_ns(s->timebase))
		(void)timebase_place(s->timebase, b->end, b->start_ns, &start_ns);
	place_start(s, b, &start_ns);
	b->end_ns = start_ns + (uint64_t)took_ns;
	if (b->end_ns > now_ns) {
		start_ns -= b->end_ns - now_ns;
		b->end_ns = now_ns;
	}
	if (b->has_start && soonest_ns(b) + WORK_LATENCY_NS > start_ns)
		start_ns = soonest_ns(b) + WORK_LATENCY_NS;
	ret_span->start_ns = start_ns < b->end_ns ? start_ns : b->end_ns;
	ret_span->end_ns = b->end_ns;
	ret_span->is_placed = b->is_placed;
	ret_span->unsure_ns = timebase_unsure_ns(s->timebase);
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
	if (from_ns < b->paid_ns)
		from_ns = b->paid_ns;
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
	uint64_t from_ns = b->paid_ns > b->start_ns ? b->paid_ns : b->start_ns;

	if (now_ns < from_ns + SHARED_NS)
		return;
	charge(s,
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

/* Charges the oldest closed batch, if it is done. Where events do not tell, it ends when its stream is seen idle. */
static bool collect_one(struct stream_state *s, uint64_t now_ns)
{
	struct batch *b = &s->batches[s->first];
	struct span span = {.start_ns = b->start_ns,
		.end_ns = now_ns > b->start_ns ? now_ns : b->start_ns,
		.is_first = b->has_start,
		.is_placed = b->is_backlog,
		.reserved_ns = b->reserved_ns,
		.queued_ns = b->queued_ns,
		.running_ns = b->running_ns,
		.paid_ns = b->paid_ns,
		.expected_ns = b->expected_ns,
		.mix = b->mix};
	CUresult r = CUDA_SUCCESS;

	if (s->is_shared) {
		charge_unseen(s, b, now_ns);
		return false;
	}
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
	anchor(s, b->end_ns);
	charge(s, &span, now_ns);
	return true;
}

void stream_state_collect(struct stream_state *s, uint64_t now_ns)
{
	while (s->pending && collect_one(s, now_ns))
		;
}

/* When the open batch began; behind work that was not seen to end nobody knows, and it takes what is expected. */
static uint64_t estimated_start_ns(struct stream_state *s, struct batch *b)
{
	if (s->pending)
		return s->drained_ns -
		       (b->expected_ns < s->drained_ns ? b->expected_ns : s->drained_ns);
	return s->is_chained && !b->has_start ? before(s, b)->end_ns : s->begun_ns;
}

/*
 * Charges the open batch without an event: from its beginning, or what of it is charged already, to when its work was done,
 * or should be. If the stream waited before it, the work came later by that.
 */
static void charge_by_estimate(struct stream_state *s, struct batch *b, uint64_t now_ns)
{
	uint64_t start_ns = estimated_start_ns(s, b), placed_ns = 0;
	uint64_t took_ns = s->drained_ns > start_ns ? s->drained_ns - start_ns : 0;

	if (b->is_timed && !s->pending)
		place_start(s, b, &placed_ns);
	if (placed_ns > start_ns)
		start_ns = placed_ns + took_ns < now_ns ? placed_ns : now_ns - took_ns;
	charge(s,
		&(struct span){.start_ns = start_ns,
			.end_ns = start_ns + took_ns,
			.is_placed = b->is_placed,
			.unsure_ns = timebase_unsure_ns(s->timebase),
			.is_waited_for = s->is_waited_for,
			.reserved_ns = b->reserved_ns,
			.queued_ns = b->queued_ns,
			.running_ns = b->running_ns,
			.paid_ns = b->paid_ns,
			.expected_ns = b->expected_ns,
			.mix = b->mix},
		now_ns);
	b->reserved_ns = 0;
	b->queued_ns = 0;
	b->running_ns = 0;
	b->paid_ns = start_ns + took_ns;
}

void stream_state_break(struct stream_state *s, uint64_t now_ns)
{
	stream_state_collect(s, now_ns);
	if (s->drained_ns > now_ns)
		s->drained_ns = now_ns;
	if (s->is_open && s->batch->launches)
		charge_by_estimate(s, s->batch, now_ns);
	end_batch(s);
	s->is_chained = false;
}

/* Whether its last work is charged as estimated, if it is not seen to end. */
static bool is_estimated(const struct stream_state *s)
{
	return s->is_open && s->batch->launches && !s->is_waited_for;
}

/* The program's work comes after a pause: the first piece is measured by itself, and after some pauses each is. */
static void doubt(struct stream_state *s, uint64_t now_ns)
{
	bool is_doubted = doubts_end_pause(
		s->meter->books, is_estimated(s), s->last_ns, now_ns, &s->doubted_until_ns);

	s->single_count = is_doubted ? UINT32_MAX : 1;
}

void stream_state_give_up(struct stream_state *s, uint64_t now_ns)
{
	if (is_estimated(s))
		(void)doubts_draw(s->meter->books, s->last_ns, now_ns);
	stream_state_break(s, now_ns);
}

void stream_state_lose_thread(struct stream_state *s, uint64_t now_ns)
{
	s->is_left = false;
	stream_state_collect(s, now_ns);
	if (s->is_open && (s->is_waited_for || !events_know_contexts()))
		stream_state_give_up(s, now_ns);
	stream_state_lose_stream(s, false, now_ns);
}

void stream_state_note_pause(struct stream_state *s, uint64_t now_ns)
{
	if (!is_continued(s, now_ns)) {
		uint64_t last_ns = s->last_ns;

		doubt(s, now_ns);
		stream_state_break(s, now_ns);
		/* After what was reserved for it has come back. */
		credit_pause(s->meter, last_ns ? now_ns - last_ns : 0, now_ns);
	} else if (s->single_count && now_ns > s->doubted_until_ns) {
		s->single_count = 0;
	}
}

void stream_state_note_wait(struct stream_state *s, bool must_measure, uint64_t now_ns)
{
	if (!s->is_used || !s->is_open || s->is_shared)
		return;
	if (stream_state_has_calls(s)) {
		s->is_awaited = false;
		stream_state_close(s);
		return;
	}
	s->is_awaited = now_ns <= s->last_ns + BLOCKED_NS || !stream_state_is_done(s);
	if (s->is_awaited && (must_measure || s->batch->expected_ns >= WORTH_AN_EVENT_NS))
		stream_state_close(s);
}

/* What of the open batch is not charged begins then. */
static uint64_t begin_ns_of_open(const struct stream_state *s)
{
	return s->batch->paid_ns > s->begun_ns ? s->batch->paid_ns : s->begun_ns;
}

/* A call may return at once, as one that copies nothing does: that it returned says nothing of the stream. */
static bool has_waited(const struct stream_state *s, bool can_be_asked)
{
	if (!s->is_used || s->is_shared || s->pending)
		return false;
	return !s->is_open || !can_be_asked || stream_state_is_done(s);
}

void stream_state_note_waited(
	struct stream_state *s, bool can_be_asked, uint64_t since_ns, uint64_t now_ns)
{
	if (!has_waited(s, can_be_asked))
		return;
	if (s->drained_ns > now_ns)
		s->drained_ns = now_ns;
	if (!s->is_open || !s->is_awaited)
		return;
	s->is_waited_for = s->last_ns <= since_ns;
	if (now_ns > since_ns + BLOCKED_NS)
		s->drained_ns = now_ns;
	else if (s->drained_ns < since_ns)
		s->drained_ns = since_ns;
	/* The process may end, or come back to this stream no more. */
	if (s->is_waited_for && s->drained_ns > begin_ns_of_open(s) + WORTH_AN_EVENT_NS)
		charge_by_estimate(s, s->batch, now_ns);
}

void stream_state_note_all_waited(struct stream_state *s, uint64_t since_ns, uint64_t now_ns)
{
	if (!s->is_used || s->has_stream || s->is_shared || s->last_ns > since_ns ||
		stream_state_has_calls(s))
		return;
	s->is_waited_for = true;
	stream_state_collect(s, now_ns);
}

uint64_t stream_state_begin_ns(const struct stream_state *s, uint64_t now_ns)
{
	const struct batch *b = &s->batches[s->first % STREAM_BATCHES];

	/* Work that was waited for is done, and charged when more comes. */
	if (!s->pending && (!s->is_open || !s->batch->launches ||
				   (s->is_waited_for && s->drained_ns <= now_ns)))
		return 0;
	return b->paid_ns > b->start_ns ? b->paid_ns : b->start_ns;
}

uint64_t stream_state_unknown_since_ns(const struct stream_state *s)
{
	for (unsigned i = 0; i < s->pending; i++) {
		const struct batch *b = &s->batches[(s->first + i) % STREAM_BATCHES];

		if (b->is_unknown)
			return b->start_ns;
	}
	return 0;
}

bool stream_state_has_unknown(const struct stream_state *s)
{
	/* What several streams have is never seen to end. */
	return !s->is_shared &&
	       ((s->is_open && s->batch->is_unknown) || stream_state_unknown_since_ns(s));
}

void stream_state_clear(struct stream_state *s)
{
	uint32_t use = s->use;

	/* A call that comes back reads what stands before (gate_leave_slowly()). */
	memset(&s->meter, 0, sizeof(*s) - offsetof(struct stream_state, meter));
	s->use = use;
}

void stream_state_free(struct stream_state *s)
{
	for (unsigned i = 0; i < STREAM_BATCHES; i++) {
		if (s->batches[i].start)
			own_events_destroy(s->batches[i].start);
		if (s->batches[i].end)
			own_events_destroy(s->batches[i].end);
	}
	stream_state_clear(s);
	s->use++;
	end_batch(s);
}

void stream_state_share(struct stream_state *s)
{
	/* Its events end with their context, and say nothing of the other streams. */
	for (unsigned i = 0; i < STREAM_BATCHES; i++) {
		struct batch *b = &s->batches[i];

		b->is_timed = b->is_placed = b->has_end = false;
		b->start = b->end = NULL;
	}
	s->is_shared = true;
	s->has_no_events = true;
	s->is_chained = false;
	s->is_awaited = false;
	s->is_waited_for = false;
	s->context = NULL;
	s->timebase = NULL;
}

void stream_state_lose_context(struct stream_state *s, uint64_t now_ns)
{
	struct span span = {.start_ns = s->begun_ns, .end_ns = now_ns};
	unsigned count = s->pending + (s->is_open && s->batch->launches);

	if (s->pending)
		span.start_ns = s->batches[s->first].start_ns;
	if (count) {
		span.paid_ns = s->batches[s->first].paid_ns;
		span.running_ns = s->batches[s->first].running_ns;
	}
	for (unsigned i = 0; i < count; i++)
		span.reserved_ns += s->batches[(s->first + i) % STREAM_BATCHES].reserved_ns;
	/* It was not seen to end before the context did. */
	if (count && span.start_ns < now_ns)
		charge(s, &span, now_ns);
	for (unsigned i = 0; i < STREAM_BATCHES; i++)
		s->batches[i].start = s->batches[i].end = NULL;
	end_batch(s);
	s->is_chained = false;
	s->pending = 0;
	s->has_stream = false;
	s->use++;
}
