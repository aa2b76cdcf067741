/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter.
 *
 * Work is expected to take what work of its kind took before, and so much is reserved when it is given; what
 * it really took is charged when its batch is done, and the difference goes back or is owed. So the
 * budget is never ahead of the truth by more than the error of the estimates for what is under way,
 * which is bounded (policy/throttle.c), and on the whole it is exact, whatever the estimates are worth.
 */
#include "tenant/compute/meter.h"

#include "base/clock.h"
#include "base/fault.h"
#include "tenant/compute/doubts.h"
#include "tenant/compute/overruns.h"
#include "tenant/compute/queue.h"
#include "tenant/compute/unknowns.h"
#include "tenant/compute/wait.h"

/* A batch that is so old ends. */
#define BATCH_AGE_NS	  2000000u

#define BATCH_YIELDING_NS 100000u /* beside a slice that goes first */

static uint64_t batch_ns(const struct meter *m)
{
	return m->turns.is_yielding ? BATCH_YIELDING_NS : METER_BATCH_NS;
}

/*
 * Whether the open batch takes more. What was never seen before has a batch of its own: beside work that takes less than it
 * is taken for, it would be taken for nothing.
 */
static bool has_room(struct stream_state *s, uint64_t estimate_ns, uint64_t now_ns)
{
	return s->is_open && s->batch->expected_ns < batch_ns(s->meter) &&
	       now_ns < s->begun_ns + BATCH_AGE_NS &&
	       (estimate_ns != ESTIMATE_UNKNOWN_NS || !s->batch->launches);
}

static void begin_batch(struct meter *m, struct stream_state *s, uint64_t now_ns)
{
	stream_state_open(s, streams_are_others_idle(s, now_ns), now_ns);
	/* What comes behind it is held up as well. */
	if (UNLIKELY(s->is_behind || (s->pending && stream_state_is_held_up(s)))) {
		s->batch->is_behind = true;
		s->batch->kept_until_ns = m->turns.turn.held_until_ns;
		s->is_behind = false;
	}
	if (!s->is_chained) {
		turns_note_burst(m, now_ns);
		if (!s->single_count)
			s->single_count = 1;
	}
	FAULT("meter: batch open");
}

/* By how much the process's work ends later with such a piece in the stream. */
static uint64_t longer_ns(
	const struct stream_state *s, uint64_t ns, uint64_t busy_until_ns, uint64_t now_ns)
{
	uint64_t end_ns = (s->drained_ns > now_ns ? s->drained_ns : now_ns) + ns;

	if (busy_until_ns < now_ns)
		busy_until_ns = now_ns;
	return end_ns > busy_until_ns ? end_ns - busy_until_ns : 0;
}

/* The last step: takes what the piece needs of what is the slice's, unless another process was faster. */
static enum throttle take(struct meter *m, struct stream_state *s, uint64_t estimate_ns,
	const struct throttle_work *work, const struct queue *queue)
{
	uint64_t ns = 0;

	if (work->is_unknown && !unknowns_begin(m, work->now_ns)) {
		turns_let_go(m, work->now_ns);
		return THROTTLE_UNKNOWN;
	}
	if (m->turns.peer_count) {
		ns = longer_ns(
			s, turns_queued_ns(m, estimate_ns), work->busy_until_ns, work->now_ns);
		if (!queue_enter(m, queue, ns))
			return THROTTLE_QUEUED;
	}
	if (!credit_overdraw(m, estimate_ns, credit_reserve_of(m, estimate_ns), work->is_unknown,
		    work->now_ns)) {
		queue_correct(m, -(int64_t)ns, work->now_ns);
		return THROTTLE_NO_BUDGET;
	}
	s->queued_ns = ns;
	return THROTTLE_NONE;
}

/*
 * Closes the open batch, and says why the next one has to wait, whose first work should take estimate_ns, and when to
 * ask again.
 */
static enum throttle ask(struct meter *m, struct stream_state *s, uint64_t estimate_ns,
	uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct throttle_work work = {.now_ns = now_ns,
		.is_suspended =
			m->limits.is_suspended || m->limits.is_blocked || !m->limits.is_read,
		.is_unknown = estimate_ns == ESTIMATE_UNKNOWN_NS,
		.has_peers = m->turns.peer_count != 0,
		.is_yielding = m->turns.is_yielding,
		.is_shared = m->limits.contended_percent != 0};
	struct queue queue;
	bool is_behind;
	enum throttle why;

	stream_state_close(s);
	streams_collect(m, now_ns);
	meter_say_busy_since(m, streams_begin_ns(m, now_ns));
	if (work.is_unknown)
		work.unknown_since_ns = unknowns_since_ns(m, s, now_ns);
	work.busy_until_ns = streams_end_ns(m);
	if (!work.is_suspended)
		work.credit_ready_ns =
			overruns_barred_until_ns(m, work.is_unknown, now_ns, &m->turns.careful_ns);
	/* It may be what that work waits for, so it has to come to the device some time. */
	is_behind = work.credit_ready_ns && streams_have_backlog(m);
	if (is_behind)
		work.credit_ready_ns = 0;
	if (!work.is_suspended && !work.credit_ready_ns)
		work.credit_ready_ns = credit_ready_ns(
			m, s, estimate_ns, streams_others_ahead_ns(s, now_ns), now_ns);
	if (!work.is_suspended && !work.credit_ready_ns)
		work.credit_ready_ns = streams_backlog_until_ns(m, now_ns);
	work.is_careful = m->turns.careful_ns && !work.is_unknown;
	work.drained_ns = s->drained_ns;
	queue = queue_look(m, now_ns);
	work.queued_until_ns =
		queue.end_ns > work.busy_until_ns ? queue.end_ns : work.busy_until_ns;
	work.due_ns = s->pending ? s->batches[s->first].due_ns : 0;
	work.has_work = s->pending || s->is_open;
	work.is_full = is_behind || s->pending == STREAM_PENDING;
	why = throttle_work(&work, ret_wake_ns);
	if (is_behind && why == THROTTLE_TOO_FAR)
		*ret_wake_ns = now_ns + THROTTLE_SLEEP_MAX_NS;
	if (why != THROTTLE_NONE)
		return why;
	if (!unknowns_may_begin(m, work.is_unknown, now_ns, ret_wake_ns))
		return THROTTLE_UNKNOWN;
	why = turns_ask(
		m, estimate_ns, work.busy_until_ns, work.queued_until_ns, now_ns, ret_wake_ns);
	if (why != THROTTLE_NONE)
		return why;
	*ret_wake_ns = now_ns + THROTTLE_SLEEP_MIN_NS;
	return take(m, s, estimate_ns, &work, &queue);
}

/*
 * With the lock: waits until the stream may have a batch more, or has one that takes more. False where too many are under
 * way, and none of them ends.
 */
static bool wait_for_room(
	struct meter *m, struct stream_state *s, uint32_t estimate, uint64_t now_ns)
{
	uint64_t wake_ns, stuck_since_ns = 0, ns;

	for (unsigned waits = 0; !has_room(s, ns = estimate_ns(estimate), now_ns); waits++) {
		enum throttle why = ask(m, s, ns, now_ns, &wake_ns);
		bool is_unknown = ns == ESTIMATE_UNKNOWN_NS;

		if (throttle_is_stuck(why, s->drained_ns, is_unknown ? unknowns_moved_ns(m, s) : 0,
			    now_ns, &stuck_since_ns)) {
			if (is_unknown)
				unknowns_pass(m, now_ns);
			if (s->pending == STREAM_PENDING)
				return false;
			why = THROTTLE_NONE;
		}
		if (why == THROTTLE_NONE && !s->is_open)
			return true;
		/* Once a batch: how often it looks again is the clock's business. */
		if (waits == 0)
			FAULT("meter: waiting");
		wait_until(s, why, wake_ns, now_ns);
		now_ns = clock_now_ns();
	}
	return true;
}

/* Of a moment that a clock told that may be ahead by some us; 0: there was none. */
static uint64_t since(uint64_t ns, uint64_t now_ns)
{
	return ns && ns < now_ns ? now_ns - ns : 0;
}

/* A pause of the stream is one of the process where no other stream went on meanwhile. */
static void note_pause(struct meter *m, struct stream_state *s, uint64_t now_ns)
{
	uint64_t last_ns = s->last_ns, any_ns;

	if (!stream_state_note_pause(s, now_ns))
		return;
	any_ns = streams_last_ns(m, now_ns);
	/* After what was reserved for it has come back. */
	credit_pause(m, since(last_ns, now_ns), since(any_ns, now_ns), now_ns);
}

/* With the lock. is_drawn: nothing else is to be in the batch. False where work goes without one. */
static bool open_batch(
	struct meter *m, struct stream_state *s, uint32_t estimate, bool is_drawn, uint64_t now_ns)
{
	uint64_t unmetered_ns = m->limits.unmetered_until_ns;

	if (UNLIKELY(s->patience_ns)) {
		wait_behind(s);
		now_ns = clock_now_ns();
	}
	if (unmetered_ns && now_ns < unmetered_ns + STREAMS_BACKLOG_NS)
		stream_state_note_backlog(
			s, unmetered_ns, unmetered_ns + STREAMS_BACKLOG_NS, now_ns);
	note_pause(m, s, now_ns);
	if (is_drawn)
		stream_state_close(s);
	streams_note_others(s, now_ns);
	if (!wait_for_room(m, s, estimate, now_ns))
		return false;
	if (!s->is_open)
		begin_batch(m, s, clock_now_ns());
	s->batch->queued_ns += s->queued_ns;
	s->queued_ns = 0;
	return true;
}

static void expect(struct meter *m, struct stream_state *s, uint32_t estimate, uint64_t now_ns)
{
	struct batch *b = s->batch;
	uint64_t ns = estimate_ns(estimate);
	int64_t reserve = credit_reserve_of(m, ns);

	/* Also in a batch of which all was waited for. */
	if (!m->since_ns)
		meter_say_busy_since(m, now_ns);
	if (!b->launches)
		b->called_ns = now_ns;
	b->expected_ns += turns_piece_ns(m, ns);
	b->reserved_ns += reserve;
	b->launches++;
	b->is_unknown |= ns == ESTIMATE_UNKNOWN_NS;
	estimate_mix_add(&b->mix, estimate);
	credit_reserve(m, reserve, now_ns);
	s->is_awaited = false;
	s->is_waited_for = false;
	s->drained_ns = (s->drained_ns > now_ns ? s->drained_ns : now_ns) + ns;
	s->last_ns = now_ns;
	m->counts.launches++;
}

enum meter_admitted meter_admit(struct stream_state *s, uint32_t estimate, uint64_t now_ns)
{
	struct meter *m = s->meter;
	bool is_drawn = UNLIKELY(now_ns < s->doubted_until_ns) && !s->single_count &&
			doubts_draw(&m->random);
	bool is_full, has_batch = true;

	if (UNLIKELY(!has_room(s, estimate_ns(estimate), now_ns) || is_drawn ||
		     now_ns > s->last_ns + STREAM_PAUSE_NS)) {
		has_batch = open_batch(m, s, estimate, is_drawn, clock_now_ns());
		now_ns = clock_now_ns();
		m->counts.batches++;
		/* relaxed: for people to read */
		atomic_fetch_add_explicit(
			&m->books->launches, m->counts.launches, memory_order_relaxed);
		m->counts.launches = 0;
	}
	if (!has_batch)
		return METER_WITHOUT;
	expect(m, s, estimate, now_ns);
	/* Where a pause has ended the first piece is one by itself in any case. */
	s->batch->is_drawn = is_drawn && s->batch->launches == 1 && !s->single_count;
	is_full = s->single_count || is_drawn || s->batch->expected_ns >= batch_ns(m);
	s->single_count -= s->single_count != 0;
	return is_full ? METER_ENDS_BATCH : METER_IN_BATCH;
}

void meter_given(struct stream_state *s, uint64_t given_ns)
{
	struct meter *m = s->meter;

	s->last_ns = clock_now_ns();
	if (s->is_open) {
		/* The first of a batch that only the first may call this for. */
		if (s->batch->launches == 1)
			s->batch->given_ns = given_ns;
		stream_state_close(s);
		FAULT("meter: batch closed");
		meter_say_busy_until(m, streams_end_ns(m));
		if (m->unknowns.word && stream_state_has_unknown(s))
			wait_for_unknown(s);
	}
}

void meter_given_late(
	struct stream_state *s, uint32_t estimate, uint64_t since_ns, bool is_followed)
{
	uint64_t now_ns = clock_now_ns();

	stream_state_collect(s, now_ns);
	if (!s->is_open && s->pending < STREAM_PENDING) {
		/* It follows what was closed before it. Where nothing was, an event comes too late for its beginning. */
		s->last_ns = now_ns;
		begin_batch(s->meter, s, now_ns);
		is_followed &= s->is_chained;
		expect(s->meter, s, estimate, now_ns);
	} else if (!s->is_open) {
		stream_state_extend(s);
		expect(s->meter, s, estimate, now_ns);
	}
	if (!is_followed)
		stream_state_begin_by_clock(s, since_ns);
	/* Where it lies between the events nobody knows, and nothing is learned of that. */
	if (estimate_ns(estimate) == ESTIMATE_UNKNOWN_NS) {
		s->batch->is_unknown = true;
		s->batch->mix = ESTIMATE_MIX_NONE;
	}
	stream_state_close(s);
	FAULT("meter: late batch closed");
	meter_say_busy_until(s->meter, streams_end_ns(s->meter));
}

void meter_wait(struct stream_state *s, uint32_t estimate)
{
	(void)wait_for_room(s->meter, s, estimate, clock_now_ns());
	s->queued_ns = 0;
}
