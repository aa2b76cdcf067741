/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream: how its batches are opened and closed. */
#include "tenant/compute/stream_state.h"

#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fault.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/queue.h"
#include "tenant/compute/stream_thread.h"
#include "tenant/driver/own_events.h"

/* Recording takes 2 us (H200), and some more where events have to be made. */
#define RECORD_MAX_NS 50000u

/* The clocks drift apart by 2 ppm, and the driver tells distances in a float. */
#define BASE_NS UINT64_C(10000000000)

bool stream_state_can_be_asked(const struct stream_state *s)
{
	return !s->thread || stream_thread_is_own(s->thread);
}

bool stream_state_is_done(const struct stream_state *s)
{
	/* In this order: none is let in meanwhile. */
	if (s->is_shared || stream_state_has_calls(s))
		return false;
	if (!s->has_stream)
		return s->is_waited_for || events_is_dead(s->context);
	/* The driver would tell of this thread's own. */
	if (!stream_state_can_be_asked(s) && events_know_contexts())
		return events_is_dead(s->context);
	return events_is_idle(s->context, s->stream);
}

/*
 * Whether all that it was given was seen to end, and longer ago than a pause that counts as work. The driver would not tell: the legacy stream is
 * busy as long as others of its context are.
 */
static bool has_ended(const struct stream_state *s, uint64_t now_ns)
{
	const struct batch *last = &s->batches[(s->first + STREAM_BATCHES - 1) % STREAM_BATCHES];

	return !s->pending && !(s->is_open && s->batch->launches) && s->is_chained &&
	       now_ns > last->end_ns + STREAM_PAUSE_NS;
}

bool stream_state_is_continued(struct stream_state *s, uint64_t now_ns)
{
	if (now_ns <= s->last_ns + STREAM_PAUSE_NS || stream_state_has_calls(s))
		return true;
	if (!s->is_open && !s->pending && now_ns > s->drained_ns + STREAM_PAUSE_NS)
		return false;
	if (has_ended(s, now_ns))
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
		base->base_ns = now_ns + STREAM_EVENT_NS;
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

CUevent *stream_state_mark(struct stream_state *s)
{
	CUevent *event = &s->batches[(s->first + s->pending) % STREAM_BATCHES].start;

	return !s->is_open && record(s, event) ? event : NULL;
}

void stream_state_open(struct stream_state *s, bool is_alone, uint64_t now_ns)
{
	struct batch *b = begin(s);

	/* A batch that is not chained was found to be so before, and the driver is not asked again. */
	if (s->is_chained && !stream_state_is_continued(s, now_ns))
		s->is_chained = false;
	if (!s->is_chained) {
		s->fresh_count++;
		renew_base(s, is_alone, now_ns);
	}
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

void stream_state_begin_by_clock(struct stream_state *s, uint64_t since_ns)
{
	struct batch *b = s->batch;

	b->is_timed = false;
	b->start_ns = min_u64(b->start_ns, since_ns);
	s->begun_ns = min_u64(s->begun_ns, since_ns);
}

/* What came into the batch after its first work. */
static void queue_up(const struct meter *m, struct batch *b)
{
	if (!b->queued_ns || b->expected_ns <= b->queued_ns)
		return;
	queue_correct(m, (int64_t)(b->expected_ns - b->queued_ns), clock_now_ns());
	b->queued_ns = b->expected_ns;
}

void stream_state_end_batch(struct stream_state *s)
{
	s->is_open = false;
	s->is_unseen = false;
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

void stream_state_take_kept(struct stream_state *s, struct batch *b)
{
	if (s->kept_ns > b->start_ns && s->kept_ns > b->paid_ns)
		b->paid_ns = s->kept_ns;
	b->running_ns += s->kept_running_ns;
	s->kept_running_ns = 0;
}

/* The open batch has no more, and an end is to be recorded behind it; NULL: there is none, or no room for it. */
static struct batch *end_open(struct stream_state *s)
{
	struct batch *b = s->batch;

	if (!s->is_open || s->pending == STREAM_PENDING)
		return NULL;
	b->due_ns = s->drained_ns;
	/* The work may come behind the event: nothing is learned of that. */
	if (b->is_calling)
		b->mix = ESTIMATE_MIX_NONE;
	stream_state_take_kept(s, b);
	queue_up(s->meter, b);
	/* Before the event: a call that comes back in between may have given its work behind that, and is late. */
	stream_state_end_batch(s);
	s->pending++;
	return b;
}

void stream_state_close(struct stream_state *s)
{
	struct batch *b = end_open(s);

	if (b)
		record_end(s, b);
}

/* An event that is recorded behind work which is done happens so soon. */
static bool is_done_at_once(CUevent event)
{
	uint64_t until_ns = clock_now_ns() + RECORD_MAX_NS;

	while (events_query(event) != CUDA_SUCCESS)
		if (clock_now_ns() > until_ns)
			return false;
	return true;
}

bool stream_state_close_in_context(struct stream_state *s, bool is_busy)
{
	struct batch *b = s->batch;

	/* Without calls under way, and none is let in meanwhile, all of its work is before the event. */
	if (!s->is_open || s->pending == STREAM_PENDING || stream_state_has_calls(s) ||
		!events_record_in_context(s->context, &b->end))
		return false;
	if (!is_busy && is_done_at_once(b->end))
		return true;
	b->has_end = true;
	b->is_timed = s->is_chained = false;
	(void)end_open(s);
	return false;
}

void stream_state_close_backlog(struct stream_state *s, uint64_t since_ns, uint64_t until_ns)
{
	struct batch *b = begin(s);

	b->is_backlog = b->is_placed = true;
	b->start_ns = s->begun_ns = since_ns;
	b->expected_ns = until_ns - since_ns;
	s->drained_ns = until_ns;
	stream_state_close(s);
}

void stream_state_extend(struct stream_state *s)
{
	struct batch *b = &s->batches[(s->first + s->pending - 1) % STREAM_BATCHES];

	record_end(s, b);
	s->batch = b;
}

uint64_t stream_state_begin_ns(const struct stream_state *s, uint64_t now_ns)
{
	const struct batch *b = &s->batches[s->first % STREAM_BATCHES];
	uint64_t begin_ns = max_u64(b->paid_ns, b->start_ns);

	if (!s->pending && (!s->is_open || !s->batch->launches)) {
		if (!s->is_used || !stream_state_has_calls(s))
			return 0;
		begin_ns = s->last_ns;
	} else if (!s->pending && s->is_waited_for && s->drained_ns <= now_ns) {
		/* Work that was waited for is done, and charged when more comes. */
		return 0;
	}
	return max_u64(begin_ns, s->kept_ns);
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

bool stream_state_is_held_up(const struct stream_state *s)
{
	const struct batch *b = s->pending ? &s->batches[s->first] : s->batch;

	return (s->pending || s->is_open) && b->is_behind && b->has_start &&
	       events_query(b->start) == CUDA_ERROR_NOT_READY;
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
	stream_state_end_batch(s);
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
