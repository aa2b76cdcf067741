/* SPDX-License-Identifier: Apache-2.0 */
/* Where a stream's work breaks off. */
#include "tenant/compute/stream_breaks.h"

#include "tenant/compute/doubts.h"
#include "tenant/compute/events.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/stream_charge.h"

/* Work from this length on is measured exactly before it is waited for: an event costs 1 us (H200). */
#define WORTH_AN_EVENT_NS 200000u

/* A wait that took longer ended with the work, whatever was expected; less is the call itself. */
#define BLOCKED_NS 20000u

void stream_state_break(struct stream_state *s, uint64_t now_ns)
{
	stream_state_collect(s, now_ns);
	if (s->drained_ns > now_ns)
		s->drained_ns = now_ns;
	if (s->is_open && s->batch->launches)
		stream_charge_by_estimate(s, now_ns);
	stream_state_end_batch(s);
	s->is_chained = false;
}

/* What that waits for may be for the program to bring about, which is not to stand still. */
#define BEHIND_NS UINT64_C(1000000)

void stream_state_pass(struct stream_state *s, unsigned breaks_most, uint64_t patience_ns)
{
	if (s->pending < breaks_most) {
		stream_state_close(s);
		s->is_chained = s->is_chained && s->is_open;
	}
	if (stream_state_is_held_up(s))
		patience_ns = BEHIND_NS;
	s->passed++;
	s->patience_ns = s->patience_ns ? min_u64(s->patience_ns, patience_ns) : patience_ns;
}

/*
 * The program's work comes after a pause: the first piece is measured by itself, and where all are
 * suspected each is.
 */
static void doubt(struct stream_state *s, uint64_t now_ns)
{
	bool are_all = doubts_end_pause(s->meter->books, stream_state_is_untold(s), s->last_ns,
		now_ns, &s->doubted_until_ns);

	s->single_count = are_all ? UINT32_MAX : 1;
}

void stream_state_give_up(struct stream_state *s, uint64_t now_ns)
{
	if (stream_state_is_untold(s))
		doubts_note_pause(s->meter->books, s->last_ns, now_ns);
	stream_state_break(s, now_ns);
}

void stream_state_end_open(struct stream_state *s, uint64_t now_ns)
{
	if (s->is_open && s->is_waited_for && !s->pending)
		stream_state_break(s, now_ns);
	else
		stream_state_close(s);
}

bool stream_state_note_pause(struct stream_state *s, uint64_t now_ns)
{
	if (!stream_state_is_continued(s, now_ns)) {
		doubt(s, now_ns);
		stream_state_break(s, now_ns);
		return true;
	}
	if (s->single_count && now_ns > s->doubted_until_ns)
		s->single_count = 0;
	return false;
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
	/* That wait told when its work ended, and nothing came since: of this one it would take the end for its own. */
	if (s->is_waited_for) {
		s->is_awaited = false;
		return;
	}
	s->is_awaited = now_ns <= s->last_ns + BLOCKED_NS || !stream_state_is_done(s);
	if (s->is_awaited && (must_measure || s->batch->expected_ns >= WORTH_AN_EVENT_NS))
		stream_state_close(s);
}

/* What of the open batch is not charged begins then. */
static uint64_t begin_ns_of_open(const struct stream_state *s)
{
	return max_u64(s->batch->paid_ns, s->begun_ns);
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
		stream_charge_by_estimate(s, now_ns);
}

void stream_state_note_all_waited(struct stream_state *s, uint64_t since_ns, uint64_t now_ns)
{
	if (!s->is_used || s->has_stream || s->is_shared || s->last_ns > since_ns ||
		stream_state_has_calls(s))
		return;
	s->is_waited_for = true;
	stream_state_collect(s, now_ns);
}

void stream_state_note_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns)
{
	if (s->last_ns > since_ns || s->is_shared || stream_state_is_done(s))
		return;
	stream_state_collect(s, now_ns);
	if (s->is_open || s->pending)
		return;
	stream_state_close_backlog(s, since_ns, until_ns);
}

bool stream_state_hold_backlog(
	struct stream_state *s, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns)
{
	s->has_stream = false;
	stream_state_close_backlog(s, since_ns, until_ns);
	if (!s->batches[s->first].has_end)
		s->pending = 0;
	else
		stream_state_collect(s, now_ns);
	return s->batches[s->first].has_end;
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

/*
 * No pause of the next thread's stream tells for how long the work of this one may have gone on: as
 * if it were so long.
 */
#define LOST_NS UINT64_C(62500000)

void stream_state_lose_thread(struct stream_state *s, uint64_t now_ns)
{
	s->is_left = false;
	stream_state_collect(s, now_ns);
	if (s->is_open && (s->is_waited_for || !events_know_contexts())) {
		if (stream_state_is_untold(s))
			doubts_note_pause(s->meter->books, now_ns - LOST_NS, now_ns);
		stream_state_give_up(s, now_ns);
	}
	stream_state_lose_stream(s, false, now_ns);
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
	span.running_ns += s->kept_running_ns;
	s->kept_running_ns = 0;
	span.paid_ns = max_u64(span.paid_ns, s->kept_ns);
	for (unsigned i = 0; i < count; i++)
		span.reserved_ns += s->batches[(s->first + i) % STREAM_BATCHES].reserved_ns;
	/* It was not seen to end before the context did. */
	if (count && span.start_ns < now_ns)
		stream_charge_span(s, &span, now_ns);
	else
		credit_end_running(s->meter, span.running_ns, now_ns);
	for (unsigned i = 0; i < STREAM_BATCHES; i++)
		s->batches[i].start = s->batches[i].end = NULL;
	stream_state_end_batch(s);
	s->is_chained = false;
	s->pending = 0;
	s->has_stream = false;
	s->use++;
}
