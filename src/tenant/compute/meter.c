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
#include "tenant/compute/turns.h"
#include "tenant/compute/wait.h"
#include "tenant/compute/credit.h"
#include "tenant/compute/work.h"

/* A batch that is so old ends. */
#define BATCH_AGE_NS 2000000u

/*
 * Of pauses before which work was charged as estimated, one in so many is followed by work of which each piece is
 * measured, for so many times as long as the pause, which is as much as it may have hidden; a launch costs
 * 1.7 us more then (H200). Once that has shown work to be hidden, more are (DOUBTED_WHEN_SHOWN in work.c).
 */
#define DOUBTED		  8
#define DOUBTED_TIMES	  16

#define BATCH_YIELDING_NS 100000u /* beside a slice that goes first */

static uint64_t batch_ns(const struct meter *m)
{
	return m->turns.is_yielding ? BATCH_YIELDING_NS : METER_BATCH_NS;
}

/* Whether the open batch takes more. */
static bool has_room(struct stream_state *s, uint64_t now_ns)
{
	return s->is_open && stream_state_batch(s)->expected_ns < batch_ns(s->meter) &&
	       now_ns < s->begun_ns + BATCH_AGE_NS;
}

/*
 * The program's work comes after a pause. What it gave last before is charged as estimated, as nothing tells
 * when it ended, unless the program waited for it. So that estimates can be relied upon, the first
 * work after a pause is measured by itself, and after some pauses, which nobody can foresee, each piece is.
 */
static void doubt(struct stream_state *s, uint64_t now_ns)
{
	bool is_doubted = s->doubted_pauses || (s->is_estimated && hash_u64(now_ns) % DOUBTED == 0);

	s->doubted_pauses -= s->doubted_pauses != 0;
	s->is_estimated = false;
	s->single_count = is_doubted ? UINT32_MAX : 1;
	s->doubted_until_ns = now_ns + DOUBTED_TIMES * (now_ns - s->last_ns);
}

static void begin_batch(struct meter *m, struct stream_state *s, uint64_t now_ns)
{
	/* What is not chained was found to be so before, and the driver is not asked again. */
	if (s->is_chained && !stream_state_is_continued(s, now_ns))
		work_end_batch(s, now_ns, false);
	if (!s->is_chained) {
		turns_note_burst(m, now_ns);
		if (!s->single_count)
			s->single_count = 1;
	}
	stream_state_open(s, now_ns);
	FAULT("meter: batch open");
}

/* When the oldest work was given of which nobody knows how long it takes, and which is under way; 0: none. */
static uint64_t unknown_since_ns(const struct stream_state *s)
{
	for (unsigned i = 0; i < s->pending; i++) {
		const struct batch *b = &s->batches[(s->first + i) % STREAM_BATCHES];

		if (b->is_unknown)
			return b->start_ns;
	}
	return 0;
}

/* Why a batch has to wait whose first work should take estimate_ns, and when to ask again. */
static enum throttle ask(struct meter *m, struct stream_state *s, uint64_t estimate_ns,
	uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct throttle_work work = {.now_ns = now_ns,
		.is_suspended = m->limits.is_suspended || m->limits.is_blocked,
		.is_unknown = estimate_ns == ESTIMATE_UNKNOWN_NS,
		.has_peers = m->turns.peer_count != 0,
		.is_yielding = m->turns.is_yielding};
	enum throttle why;

	work_collect(m, now_ns);
	if (!work.is_suspended)
		work.credit_ready_ns = credit_ready_ns(m, s, now_ns);
	work.busy_until_ns = work_end_ns(m);
	work.drained_ns = s->drained_ns;
	work.due_ns = s->pending ? s->batches[s->first].due_ns : 0;
	work.unknown_since_ns = work.is_unknown ? unknown_since_ns(s) : 0;
	work.has_work = s->pending || s->is_open;
	work.is_full = s->pending == STREAM_PENDING;
	why = throttle_work(&work, ret_wake_ns);
	if (why == THROTTLE_NONE)
		return turns_ask(m, estimate_ns, work.busy_until_ns, now_ns, ret_wake_ns);
	if (why == THROTTLE_SUSPENDED || why == THROTTLE_NO_BUDGET)
		turns_let_go(m, now_ns);
	return why;
}

/* With the lock. False where work goes without a batch: it is part of the next one, which follows. */
static bool open_batch(
	struct meter *m, struct stream_state *s, uint64_t estimate_ns, uint64_t now_ns)
{
	uint64_t wake_ns, stuck_since_ns = 0;
	enum throttle why;

	if (!stream_state_is_continued(s, now_ns)) {
		work_end_batch(s, now_ns, false);
		doubt(s, now_ns);
	} else if (s->single_count && now_ns > s->doubted_until_ns) {
		s->single_count = 0;
	}
	for (unsigned waits = 0; !has_room(s, now_ns); waits++) {
		work_end_batch(s, now_ns, true);
		why = ask(m, s, estimate_ns, now_ns, &wake_ns);
		if (throttle_is_stuck(why, s->drained_ns, now_ns, &stuck_since_ns)) {
			if (s->pending == STREAM_PENDING)
				return false;
			why = THROTTLE_NONE;
		}
		if (why == THROTTLE_NONE && !s->is_open) {
			begin_batch(m, s, now_ns);
			return true;
		}
		/* Once a batch: how often it looks again is the clock's business. */
		if (waits == 0)
			FAULT("meter: waiting");
		wait_for(s, why, wake_ns, now_ns);
		now_ns = clock_now_ns();
	}
	return true;
}

static void expect(
	struct meter *m, struct stream_state *s, uint32_t estimate, uint64_t ns, uint64_t now_ns)
{
	struct batch *b = stream_state_batch(s);
	int64_t reserve =
		(int64_t)(ns * m->work.overlap_permille / 1000 * m->limits.counted_permille / 1000);

	b->expected_ns += ns;
	b->reserved_ns += reserve;
	b->launches++;
	b->is_unknown |= ns == ESTIMATE_UNKNOWN_NS;
	estimate_mix_add(&b->mix, estimate);
	credit_reserve(m, reserve, now_ns);
	s->is_waited_for = false;
	s->drained_ns = (s->drained_ns > now_ns ? s->drained_ns : now_ns) + ns;
	s->last_ns = now_ns;
	m->counts.launches++;
}

bool meter_admit(struct stream_state *s, uint32_t estimate, uint64_t now_ns)
{
	struct meter *m = s->meter;
	bool is_full, has_batch = true;
	uint64_t ns = estimate_ns(estimate);

	if (UNLIKELY(!has_room(s, now_ns) || now_ns > s->last_ns + STREAM_PAUSE_NS)) {
		has_batch = open_batch(m, s, ns, clock_now_ns());
		now_ns = clock_now_ns();
		m->counts.batches++;
		meter_count(&m->books->launches, m->counts.launches);
		m->counts.launches = 0;
	}
	if (has_batch)
		expect(m, s, estimate, ns, now_ns);
	is_full =
		has_batch && (s->single_count || stream_state_batch(s)->expected_ns >= batch_ns(m));
	s->single_count -= s->single_count != 0;
	return is_full;
}

void meter_given(struct stream_state *s)
{
	struct meter *m = s->meter;
	uint64_t now_ns = clock_now_ns();

	s->last_ns = now_ns;
	if (s->is_open) {
		/* The first of a batch that only the first may call this for. */
		if (stream_state_batch(s)->launches == 1)
			stream_state_batch(s)->given_ns = now_ns;
		work_end_batch(s, now_ns, true);
		FAULT("meter: batch closed");
		work_say_busy_until(m, work_end_ns(m));
	}
}
