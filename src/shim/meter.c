/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter.
 *
 * Work is expected to take what work of its kind took before, and so much is reserved when it is given; what
 * it really took is charged when its batch is done, and the difference goes back or is owed. So the
 * budget is never ahead of the truth by more than the error of the guesses for what is under way,
 * which is bounded (AHEAD_NS in hindrance.c), and on the whole it is exact, whatever the guesses are worth.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "shim/meter.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "region/busy.h"
#include "shim/hindrance.h"
#include "shim/purse.h"

/* A batch that is so old ends. */
#define BATCH_AGE_NS 2000000u

/* One of so many pauses is followed by work of which each piece is measured. */
#define DOUBTED		  8

#define BATCH_YIELDING_NS 100000u /* beside a slice that goes first */
#define REGULAR		  3	  /* pauses of the same length, within an eighth, are no accident */
#define OVERLAP_SHARE	  4	  /* an error moves the overlap by a quarter of it */

unsigned meter_rank(const struct meter *m, uint64_t now_ns)
{
	return m->terms.priority * METER_RANKS + purse_is_borrowing(m, now_ns);
}

static void charge(struct meter *m, const struct track_span *span, uint64_t now_ns)
{
	uint64_t took = span->end_ns - span->start_ns;
	uint64_t elapsed = busy_mark(m->books, span->start_ns, span->end_ns);
	uint64_t fresh = elapsed * m->counted_permille / 1000;

	FAULT("meter: marked");
	if (took) {
		int64_t error = (int64_t)(elapsed * 1000 / took) - m->overlap_permille;

		m->overlap_permille = (uint32_t)(m->overlap_permille + error / OVERLAP_SHARE);
	}
	/* With others about, the first work also waits for the device to change over: 0.15 ms (H200). */
	if (span->is_measured)
		guess_learn(&span->mix, took, span->is_first && m->other_count);
	log_debug("work was charged", U64("start_ns", span->start_ns), U64("took_ns", took),
		U64("charged_ns", fresh), U64("reserved_ns", (uint64_t)span->reserved_ns),
		U64("measured", span->is_measured));
	purse_charge(m, span->reserved_ns, (int64_t)fresh, now_ns);
	m->charged_ns += fresh;
	meter_count(&m->books->elapsed_ns, elapsed);
	meter_count(&m->books->busy_ns, fresh);
	if (purse_is_borrowing(m, now_ns))
		meter_count(&m->books->lent_ns, fresh);
	FAULT("meter: partly charged");
}

void meter_settle(struct meter *m, uint64_t now_ns)
{
	struct track_span span;

	for (unsigned i = 0; i < m->track_high; i++)
		while (m->tracks[i].pending && track_collect(&m->tracks[i], now_ns, &span))
			charge(m, &span, now_ns);
}

void meter_end_batch(struct track *t, uint64_t now_ns, bool is_exact)
{
	struct track_span span;

	if (is_exact && t->is_open && t->pending < TRACK_PENDING)
		track_close(t);
	else if (!is_exact && track_break(t, now_ns, &span))
		charge(t->meter, &span, now_ns);
}

/* When all that this process has given to the device should be done. */
uint64_t meter_drained_ns(const struct meter *m)
{
	uint64_t latest = 0;

	for (unsigned i = 0; i < m->track_high; i++) {
		const struct track *t = &m->tracks[i];

		if (t->is_used && (t->pending || t->is_open) && t->drained_ns > latest)
			latest = t->drained_ns;
	}
	return latest;
}

/* Streams of other threads, and those that have no handle of their own, cannot be given an event from here. */
static bool is_reachable(const struct track *t)
{
	return !t->thread && t->stream && t->stream != CU_STREAM_LEGACY;
}

/*
 * Whether it is known that nothing of this process is on the device. An open batch ends with no event, so
 * only a wait for its stream tells, or time.
 */
bool meter_is_idle(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->track_high; i++) {
		const struct track *t = &m->tracks[i];

		if (t->pending)
			return false;
		if (t->is_open && !t->is_waited_for &&
			(is_reachable(t) || now_ns < t->drained_ns + METER_LATE_NS))
			return false;
	}
	return true;
}

void meter_end_batches(struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->track_high; i++) {
		struct track *t = &m->tracks[i];

		if (t->is_open && !t->is_waited_for && is_reachable(t))
			meter_end_batch(t, now_ns, true);
	}
}

static void say_busy_until(struct meter *m, uint64_t until_ns)
{
	/* relaxed: for others to wait a little longer or not */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].busy_until_ns[m->device->entry], until_ns,
		memory_order_relaxed);
}

void meter_drained(struct meter *m, uint64_t now_ns)
{
	if (!meter_is_idle(m, now_ns))
		return;
	say_busy_until(m, 0);
	if (!m->has_turns || m->is_turn_awaited)
		return;
	if (turn_is_wanted(&m->turn, meter_rank(m, now_ns), now_ns, now_ns))
		(void)turn_release(&m->turn, now_ns);
	else
		turn_idle(&m->turn, now_ns);
}

static uint64_t batch_ns(const struct meter *m)
{
	return m->is_yielding ? BATCH_YIELDING_NS : METER_BATCH_NS;
}

/* Whether the open batch takes more. */
static bool has_room(struct track *t, uint64_t now_ns)
{
	return t->is_open && track_batch(t)->expected_ns < batch_ns(t->meter) &&
	       now_ns < t->begun_ns + BATCH_AGE_NS;
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

static void begin_batch(struct meter *m, struct track *t, uint64_t now_ns)
{
	/* What is not chained was found to be so before, and the driver is not asked again. */
	if (t->is_chained && !track_is_continued(t, now_ns))
		meter_end_batch(t, now_ns, false);
	if (!t->is_chained) {
		note_burst(m, now_ns);
		t->is_fresh = true;
		t->is_doubted = hash_u64(now_ns) % DOUBTED == 0;
	}
	track_open(t, now_ns);
	FAULT("meter: batch open");
	if (t->is_fresh && m->other_count)
		log_debug("a turn's first work", U64("at_ns", clock_now_ns()));
}

/* With the lock. False where work goes without a batch: it is part of the next one, which follows. */
static bool open_batch(struct meter *m, struct track *t, uint64_t guess_ns, uint64_t now_ns)
{
	uint64_t wake_ns, stuck_since_ns = 0;
	enum hindrance why;

	if (!track_is_continued(t, now_ns))
		meter_end_batch(t, now_ns, false);
	for (unsigned waits = 0; !has_room(t, now_ns); waits++) {
		meter_end_batch(t, now_ns, true);
		why = hindrance_of(m, t, guess_ns, now_ns, &wake_ns);
		if (hindrance_is_stuck(t, why, &stuck_since_ns, now_ns)) {
			if (t->pending == TRACK_PENDING)
				return false;
			why = HINDRANCE_NONE;
		}
		if (why == HINDRANCE_NONE && !t->is_open) {
			begin_batch(m, t, now_ns);
			return true;
		}
		/* Once a batch: how often it looks again is the clock's business. */
		if (waits == 0)
			FAULT("meter: waiting");
		hindrance_wait(m, why, wake_ns, now_ns);
		now_ns = clock_now_ns();
	}
	return true;
}

static void expect(struct meter *m, struct track *t, uint32_t guess, uint64_t ns, uint64_t now_ns)
{
	struct batch *b = track_batch(t);
	int64_t reserve = (int64_t)(ns * m->overlap_permille / 1000 * m->counted_permille / 1000);

	b->expected_ns += ns;
	b->reserved_ns += reserve;
	b->launches++;
	guess_mix_add(&b->mix, guess);
	purse_reserve(m, reserve, now_ns);
	t->drained_ns = (t->drained_ns > now_ns ? t->drained_ns : now_ns) + ns;
	t->last_ns = now_ns;
	t->is_waited_for = false;
	m->launches++;
}

/*
 * What was given last before a pause is charged as guessed, as nothing tells when it ended. So that guesses
 * can be relied upon, the first work after a pause is measured by itself, and after some pauses, which
 * nobody can foresee, everything is. An event costs 1 us, so not after each.
 */
static bool is_verified(struct track *t)
{
	bool is_first = t->is_fresh;

	t->is_fresh = false;
	return is_first || t->is_doubted;
}

bool meter_admit(struct track *t, uint32_t guess, uint64_t now_ns)
{
	struct meter *m = t->meter;
	bool is_known, is_full, has_batch = true;
	uint64_t ns = guess_ns(guess, &is_known);

	lock_enter(&m->lock);
	if (UNLIKELY(!has_room(t, now_ns) || now_ns > t->last_ns + TRACK_PAUSE_NS)) {
		has_batch = open_batch(m, t, ns, clock_now_ns());
		now_ns = clock_now_ns();
		m->has_launched = true;
		meter_count(&m->books->launches, m->launches);
		m->launches = 0;
	}
	if (has_batch)
		expect(m, t, guess, ns, now_ns);
	is_full = has_batch && (track_batch(t)->expected_ns >= batch_ns(m) || is_verified(t));
	lock_leave(&m->lock);
	return is_full;
}

void meter_given(struct track *t)
{
	struct meter *m = t->meter;
	uint64_t now_ns;

	lock_enter(&m->lock);
	now_ns = clock_now_ns();
	t->last_ns = now_ns;
	if (t->is_open) {
		/* The first of a batch that only the first may call this for. */
		if (track_batch(t)->launches == 1)
			track_batch(t)->given_ns = now_ns;
		meter_end_batch(t, now_ns, true);
		FAULT("meter: batch closed");
		say_busy_until(m, meter_drained_ns(m));
	}
	lock_leave(&m->lock);
}
