/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter.
 *
 * Work is expected to take what work of its kind took before, and so much is reserved when it is given; what
 * it really took is charged when its batch is done, and the difference goes back or is owed. So the
 * budget is never ahead of the truth by more than the error of the estimates for what is under way,
 * which is bounded (AHEAD_NS in throttle.c), and on the whole it is exact, whatever the estimates are worth.
 */
#include "tenant/compute/meter.h"

#include "base/clock.h"
#include "base/fault.h"
#include "tenant/compute/throttle.h"
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
#define REGULAR		  3	  /* pauses of the same length, within an eighth, are no accident */

static uint64_t batch_ns(const struct meter *m)
{
	return m->is_yielding ? BATCH_YIELDING_NS : METER_BATCH_NS;
}

/* Whether the open batch takes more. */
static bool has_room(struct stream_state *s, uint64_t now_ns)
{
	return s->is_open && stream_state_batch(s)->expected_ns < batch_ns(s->meter) &&
	       now_ns < s->begun_ns + BATCH_AGE_NS;
}

/* Work comes after a pause; tells the others when it may come again. */
static void note_burst(struct meter *m, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - m->burst_ns;
	uint64_t error_ns =
		passed_ns > m->period_ns ? passed_ns - m->period_ns : m->period_ns - passed_ns;

	m->regular = error_ns < m->period_ns / 8 ? m->regular + 1 : 0;
	m->period_ns = m->regular ? (3 * m->period_ns + passed_ns) / 4 : passed_ns;
	m->burst_ns = now_ns;
	if (m->goes_first)
		turn_say_next(&m->turn, m->regular >= REGULAR ? now_ns + m->period_ns : 0);
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
		note_burst(m, now_ns);
		if (!s->single_count)
			s->single_count = 1;
	}
	stream_state_open(s, now_ns);
	FAULT("meter: batch open");
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
		why = throttle_of(m, s, estimate_ns, now_ns, &wake_ns);
		if (throttle_is_stuck(s, why, &stuck_since_ns, now_ns)) {
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
		throttle_wait(s, why, wake_ns, now_ns);
		now_ns = clock_now_ns();
	}
	return true;
}

static void expect(
	struct meter *m, struct stream_state *s, uint32_t estimate, uint64_t ns, uint64_t now_ns)
{
	struct batch *b = stream_state_batch(s);
	int64_t reserve = (int64_t)(ns * m->overlap_permille / 1000 * m->counted_permille / 1000);

	b->expected_ns += ns;
	b->reserved_ns += reserve;
	b->launches++;
	b->is_unknown |= ns == ESTIMATE_UNKNOWN_NS;
	estimate_mix_add(&b->mix, estimate);
	credit_reserve(m, reserve, now_ns);
	s->is_waited_for = false;
	s->drained_ns = (s->drained_ns > now_ns ? s->drained_ns : now_ns) + ns;
	s->last_ns = now_ns;
	m->launches++;
}

bool meter_admit(struct stream_state *s, uint32_t estimate, uint64_t now_ns)
{
	struct meter *m = s->meter;
	bool is_full, has_batch = true;
	uint64_t ns = estimate_ns(estimate);

	if (UNLIKELY(!has_room(s, now_ns) || now_ns > s->last_ns + STREAM_PAUSE_NS)) {
		has_batch = open_batch(m, s, ns, clock_now_ns());
		now_ns = clock_now_ns();
		m->has_launched = true;
		meter_count(&m->books->launches, m->launches);
		m->launches = 0;
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
