/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter.
 *
 * Work is expected to take what work of its kind took before, and so much is reserved when it is given; what
 * it really took is charged when its batch is done, and the difference goes back or is owed. So the
 * budget is never ahead of the truth by more than the error of the guesses for what is under way,
 * which is bounded (AHEAD_NS), and on the whole it is exact, whatever the guesses are worth.
 *
 * Nobody sleeps with the lock. Who waits looks again at least every LOOK_NS, so limits that are changed or
 * lifted are seen at once, and a process that is asked to go by a signal goes.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "shim/meter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "region/busy.h"
#include "shim/gate.h"
#include "shim/neighbours.h"

/*
 * A batch ends when it should take so long on the device, or is so old. An event costs the stream 2.2 us
 * (H200), so metering takes 0.2 % of what is metered.
 */
#define BATCH_NS     1000000u
#define BATCH_AGE_NS 2000000u

/* So far the host may run ahead: enough to bridge its own pauses, and all that a limit is late by. */
#define AHEAD_NS 4000000u

/* With others on the device: what must drain before a turn can be handed over. */
#define AHEAD_AMONG_OTHERS_NS 2000000u

/* What streams may take on top of a purse that is filled for the first of them. */
#define CREDIT_NS 4000000

/* A turn's end that is late by no more is waited for awake. */
#define AWAKE_NS 200000u

/* Beside a slice that goes first: what it may have to wait for. */
#define BATCH_YIELDING_NS 100000u
#define AHEAD_YIELDING_NS 100000u

/* For a slice that comes at regular times room is made so long before, and kept so long after. */
#define LEAD_NS	 400000u
#define TARDY_NS 200000u
#define REGULAR	 3 /* pauses of the same length, within an eighth, are no accident */

/* One of so many pauses is followed by work of which each piece is measured. */
#define DOUBTED 8

/* A batch that is so late was guessed wrongly, and until it is done nothing more is given. */
#define LATE_NS	      500000u

#define STUCK_NS      250000000u /* how long work that should have ended is waited for */
#define LOOK_NS	      20000000u	 /* longest sleep of a waiter */
#define POLL_NS	      50000u /* shortest; a timer is late by as much (Linux' slack for a timer) */
#define OVERLAP_SHARE 4	     /* an error moves the overlap by a quarter of it */

static struct budget_rate ceiling_rate(const struct meter *m)
{
	return (struct budget_rate){
		.permille = m->terms.cap_permille, .burst_ns = quota_options()->burst_ns};
}

static struct budget_rate sure_rate(const struct meter *m)
{
	return (struct budget_rate){
		.permille = m->terms.cores_permille, .burst_ns = quota_options()->burst_ns};
}

/* relaxed: each word is complete in itself */
static void spend(
	_Atomic uint64_t *word, const struct budget_rate *rate, uint64_t now_ns, int64_t cost_ns)
{
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(word, &seen,
		budget_spend(seen, rate, now_ns, cost_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
}

static void add(_Atomic uint64_t *word, uint64_t value)
{
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

/* What the purse owes is the slice's debt; and without a limit nothing is owed, and nothing ordered. */
static void settle_purse(struct meter *m, uint64_t now_ns)
{
	struct budget_rate rate = ceiling_rate(m);

	if (m->is_limited) {
		spend(&m->books->ceiling, &rate, now_ns, -m->purse_ns);
	} else {
		spend(&m->books->ceiling, &rate, now_ns, -m->ordered_ns);
		m->ordered_ns = 0;
	}
	m->purse_ns = 0;
}

/* Whether this slice uses what others are sure of. */
static bool is_borrowing(const struct meter *m, uint64_t now_ns)
{
	struct budget_rate rate = sure_rate(m);

	if (m->terms.cores_permille == m->terms.cap_permille)
		return false;
	/* relaxed: as in spend() */
	return m->terms.cores_permille == 0 ||
	       budget_balance_ns(atomic_load_explicit(&m->books->budget, memory_order_relaxed),
		       &rate, now_ns) < 0;
}

static unsigned rank_of(const struct meter *m, uint64_t now_ns)
{
	return m->terms.priority * METER_RANKS + is_borrowing(m, now_ns);
}

static void charge(struct meter *m, const struct track_span *span, uint64_t now_ns)
{
	uint64_t took = span->end_ns - span->start_ns;
	uint64_t elapsed = busy_mark(m->books, span->start_ns, span->end_ns);
	uint64_t fresh = elapsed * m->counted_permille / 1000;
	struct budget_rate rate = sure_rate(m), ceiling = ceiling_rate(m);

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
	/* What was expected too low is the purse's; what comes back pays the slice's debts first. */
	if (m->is_limited && (int64_t)fresh > span->reserved_ns)
		m->purse_ns -= (int64_t)fresh - span->reserved_ns;
	else if (m->is_limited)
		spend(&m->books->ceiling, &ceiling, now_ns, (int64_t)fresh - span->reserved_ns);
	if (m->purse_ns < -CREDIT_NS)
		settle_purse(m, now_ns);
	m->charged_ns += fresh;
	add(&m->books->elapsed_ns, elapsed);
	add(&m->books->busy_ns, fresh);
	if (is_borrowing(m, now_ns))
		add(&m->books->lent_ns, fresh);
	FAULT("meter: partly charged");
	spend(&m->books->budget, &rate, now_ns, (int64_t)fresh);
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
		track_close(t, now_ns);
	else if (!is_exact && track_break(t, now_ns, &span))
		charge(t->meter, &span, now_ns);
}

/* When all that this process has given to the device should be done. */
static uint64_t drained_ns(const struct meter *m)
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
static bool is_idle(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->track_high; i++) {
		const struct track *t = &m->tracks[i];

		if (t->pending)
			return false;
		if (t->is_open && !t->is_waited_for &&
			(is_reachable(t) || now_ns < t->drained_ns + LATE_NS))
			return false;
	}
	return true;
}

static void end_batches(struct meter *m, uint64_t now_ns)
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
	if (!is_idle(m, now_ns))
		return;
	say_busy_until(m, 0);
	if (!m->has_turns || m->is_turn_awaited)
		return;
	if (turn_is_wanted(&m->turn, rank_of(m, now_ns), now_ns, now_ns))
		(void)turn_release(&m->turn, now_ns);
	else
		turn_idle(&m->turn, now_ns);
}

/* relaxed: as in spend() */
static uint64_t budget_wait(const struct meter *m, uint64_t now_ns, int64_t more_ns)
{
	struct budget_rate rate = ceiling_rate(m);
	uint64_t word = atomic_load_explicit(&m->books->ceiling, memory_order_relaxed);

	return budget_wait_ns(budget_spend(word, &rate, now_ns, -more_ns), &rate, now_ns);
}

/*
 * Streams that begin together may overlap, and what overlaps is charged once. So with each filling of the
 * purse every track may open a batch, on credit.
 */
static bool has_credit(const struct meter *m, const struct track *t, uint64_t now_ns)
{
	return now_ns < m->filled_ns + BATCH_NS && t->filling != m->filling &&
	       m->purse_ns > -CREDIT_NS;
}

static void fill_purse(struct meter *m, uint64_t now_ns)
{
	m->purse_ns += m->ordered_ns;
	m->ordered_ns = 0;
	m->filled_ns = now_ns;
	m->filling++;
}

/*
 * Whether the purse lets the track open a batch; else with when to ask again. A filling is taken out of the
 * slice's budget when it is ordered, and may be spent when what was owed before is paid: so
 * processes that wait for the same budget are served in the order of their coming.
 */
static bool has_budget(struct meter *m, struct track *t, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct budget_rate rate = ceiling_rate(m);
	uint64_t ready_ns;

	if (!m->is_limited) {
		if (m->purse_ns || m->ordered_ns)
			settle_purse(m, now_ns);
		return true;
	}
	if (m->purse_ns > 0 || has_credit(m, t, now_ns)) {
		t->filling = m->filling;
		return true;
	}
	ready_ns = now_ns + budget_wait(m, now_ns, m->ordered_ns);
	if (!m->ordered_ns) {
		m->ordered_ns = METER_PURSE_NS - m->purse_ns;
		m->ready_ns = ready_ns;
		spend(&m->books->ceiling, &rate, now_ns, m->ordered_ns);
		FAULT("meter: ordered");
	} else if (ready_ns < m->ready_ns) {
		m->ready_ns = ready_ns;
	}
	if (now_ns < m->ready_ns) {
		uint64_t drained = drained_ns(m);

		/* When what is under way is done, some of what was reserved for it may come back. */
		*ret_wake_ns = drained > now_ns && drained < m->ready_ns ? drained : m->ready_ns;
		return false;
	}
	fill_purse(m, now_ns);
	t->filling = m->filling;
	return true;
}

/* Whether the stream has little enough before it. */
static bool is_near(struct meter *m, struct track *t, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t ahead = m->is_yielding	  ? AHEAD_YIELDING_NS
			 : m->other_count ? AHEAD_AMONG_OTHERS_NS
					  : AHEAD_NS;
	const struct batch *oldest = &t->batches[t->first];

	if (t->drained_ns > now_ns + ahead && (t->pending || t->is_open)) {
		*ret_wake_ns = t->drained_ns - ahead;
		return false;
	}
	if (t->pending == TRACK_PENDING || (t->pending && now_ns > oldest->due_ns + LATE_NS)) {
		*ret_wake_ns = now_ns + POLL_NS;
		return false;
	}
	return true;
}

/* What stands between work and the device. */
enum hindrance {
	FREE,
	SUSPENDED,
	NO_BUDGET,
	TOO_FAR,      /* what was given before has to get further */
	DRAINING,     /* what was given before has to end, as another slice waits */
	NO_TURN,      /* the thread that finds this waits for the turn */
	TURN_AWAITED, /* another thread waits for it */
	YIELDING,     /* a slice that goes first is about to come */
};

/*
 * Whether a slice that goes first is about to come: one that comes at regular times says so. The device
 * is to be free then, as work that is under way, and changing over, would delay it by half a ms.
 */
static bool expects_better(struct meter *m, unsigned rank, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t next_ns = turn_next_ns(&m->turn, rank, LEAD_NS, TARDY_NS, now_ns);

	if (next_ns)
		*ret_wake_ns = next_ns + TARDY_NS;
	return next_ns != 0;
}

/*
 * By which moment work is within a turn: its middle. So long kernels are rounded to whole turns, and a slice
 * that has saved up budget by that may have one more.
 */
static uint64_t turn_moment(
	const struct meter *m, uint64_t guess_ns, uint64_t drained_ns, uint64_t now_ns)
{
	struct budget_rate rate = sure_rate(m);
	/* relaxed: as in spend() */
	int64_t saved_ns = budget_balance_ns(
		atomic_load_explicit(&m->books->budget, memory_order_relaxed), &rate, now_ns);
	uint64_t half_ns = guess_ns / 2;

	if (m->terms.cores_permille && saved_ns > 0)
		half_ns -= half_ns < (uint64_t)saved_ns ? half_ns : (uint64_t)saved_ns;
	return (drained_ns > now_ns ? drained_ns : now_ns) + half_ns;
}

/* Whether the slice has the turn, and keeps it for a batch more. */
static enum hindrance turn_hindrance(
	struct meter *m, struct track *t, uint64_t guess_ns, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t drained = drained_ns(m);
	uint64_t until_ns;
	unsigned rank;

	if (!m->has_turns)
		return FREE;
	*ret_wake_ns = now_ns + 4 * POLL_NS;
	if (m->is_turn_awaited)
		return TURN_AWAITED;
	rank = rank_of(m, now_ns);
	until_ns = (drained > now_ns ? drained : now_ns) + guess_ns + BATCH_NS;
	if (m->goes_first) {
		turn_seize(&m->turn, rank, now_ns, until_ns);
		return FREE;
	}
	if (m->other_count &&
		(turn_is_wanted(
			 &m->turn, rank, now_ns, turn_moment(m, guess_ns, drained, now_ns)) ||
			(m->is_yielding && expects_better(m, rank, now_ns, ret_wake_ns)))) {
		end_batches(m, now_ns);
		if (!is_idle(m, now_ns)) {
			*ret_wake_ns = drained;
			return drained + AWAKE_NS > now_ns ? DRAINING : TOO_FAR;
		}
		(void)turn_release(&m->turn, now_ns);
		log_debug("a turn was released", U64("at_ns", clock_now_ns()),
			U64("ended_ns", t->drained_ns));
	}
	if (m->is_yielding && expects_better(m, rank, now_ns, ret_wake_ns)) {
		turn_leave(&m->turn);
		return YIELDING;
	}
	if (turn_hold(&m->turn, rank, now_ns, until_ns, ret_wake_ns) == TURN_HELD)
		return FREE;
	m->is_turn_awaited = true;
	return NO_TURN;
}

/* While the slice waits for its budget others may have the device. */
static void let_go(struct meter *m, uint64_t now_ns)
{
	if (!m->has_turns || !m->other_count || m->is_turn_awaited)
		return;
	end_batches(m, now_ns);
	if (is_idle(m, now_ns))
		turn_leave(&m->turn);
}

/* With when it may be over, or is to be looked at again. */
static enum hindrance hindrance(
	struct meter *m, struct track *t, uint64_t guess_ns, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	meter_settle(m, now_ns);
	*ret_wake_ns = now_ns + LOOK_NS;
	if (meter_is_suspended(m) || m->is_blocked) {
		let_go(m, now_ns);
		return SUSPENDED;
	}
	if (!has_budget(m, t, now_ns, ret_wake_ns)) {
		let_go(m, now_ns);
		return NO_BUDGET;
	}
	if (!is_near(m, t, now_ns, ret_wake_ns))
		return TOO_FAR;
	return turn_hindrance(m, t, guess_ns, now_ns, ret_wake_ns);
}

/* Timers are late by Linux' slack for them, 50 us, and some. */
static void sleep_until(uint64_t wake_ns, uint64_t now_ns)
{
	uint64_t ns = wake_ns > now_ns + POLL_NS ? wake_ns - now_ns : POLL_NS;
	struct timespec rest = {.tv_nsec = (long)(ns < LOOK_NS ? ns : LOOK_NS)};

	nanosleep(&rest, NULL);
}

/* For what another slice waits for: the last part of it is waited for awake. */
static void sleep_exactly(uint64_t wake_ns, uint64_t now_ns)
{
	if (wake_ns > now_ns + 3 * POLL_NS)
		sleep_until(wake_ns - 2 * POLL_NS, now_ns);
	else if (wake_ns <= now_ns)
		wake_ns = now_ns + POLL_NS / 5;
	for (unsigned i = 0; i < 1000 && clock_now_ns() < wake_ns; i++)
		lock_pause();
}

/* Without the lock, as long as it takes; with it before and after. */
static void wait_for(struct meter *m, enum hindrance why, uint64_t wake_ns, uint64_t now_ns)
{
	bool may_look = m->is_limited && (why == NO_BUDGET || why == TOO_FAR);

	lock_leave(&m->lock);
	FAULT("meter: waiting");
	if (may_look && neighbours_look(m, now_ns))
		; /* which took some of the time */
	else if (why == NO_TURN)
		(void)turn_wait(&m->turn, wake_ns < now_ns + LOOK_NS ? wake_ns : now_ns + LOOK_NS);
	else if (why == DRAINING)
		sleep_exactly(wake_ns, now_ns);
	else
		sleep_until(wake_ns, now_ns);
	gate_look();
	lock_enter(&m->lock);
	if (why == NO_TURN)
		m->is_turn_awaited = false;
	if (why == NO_TURN)
		log_debug("a wait for the turn ended", U64("began_ns", now_ns),
			U64("until_ns", wake_ns), U64("at_ns", clock_now_ns()));
	if (why == NO_BUDGET)
		add(&m->books->budget_wait_ns, clock_now_ns() - now_ns);
	else if (why == NO_TURN || why == TURN_AWAITED)
		add(&m->books->turn_wait_ns, clock_now_ns() - now_ns);
}

static uint64_t batch_ns(const struct meter *m)
{
	return m->is_yielding ? BATCH_YIELDING_NS : BATCH_NS;
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

/*
 * Work that does not end may wait for what the program is about to give, on this stream or another: a flag
 * that the host sets, a kernel's counterpart. So waiting for it has an end, and then work is let through now
 * and then; what it took is charged when its end is seen.
 */
static bool is_stuck(const struct track *t, enum hindrance why, uint64_t *since_ns, uint64_t now_ns)
{
	if ((why != TOO_FAR && why != DRAINING) || now_ns < t->drained_ns) {
		*since_ns = 0;
		return false;
	}
	if (!*since_ns)
		*since_ns = now_ns;
	return now_ns > *since_ns + STUCK_NS;
}

static void begin_batch(struct meter *m, struct track *t, uint64_t now_ns)
{
	if (!track_is_continued(t, now_ns))
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
	while (!has_room(t, now_ns)) {
		meter_end_batch(t, now_ns, true);
		why = hindrance(m, t, guess_ns, now_ns, &wake_ns);
		if (is_stuck(t, why, &stuck_since_ns, now_ns)) {
			if (t->pending == TRACK_PENDING)
				return false;
			why = FREE;
		}
		if (why == FREE && !t->is_open) {
			begin_batch(m, t, now_ns);
			return true;
		}
		wait_for(m, why, wake_ns, now_ns);
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
	m->purse_ns -= reserve;
	if (UNLIKELY(m->purse_ns < -CREDIT_NS))
		settle_purse(m, now_ns);
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
		add(&m->books->launches, m->launches);
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
		say_busy_until(m, drained_ns(m));
	}
	lock_leave(&m->lock);
}

void meter_pass_suspension(struct meter *m)
{
	for (;;) {
		uint64_t now_ns;
		bool is_suspended;

		lock_enter(&m->lock);
		is_suspended = meter_is_suspended(m);
		lock_leave(&m->lock);
		if (!is_suspended)
			return;
		now_ns = clock_now_ns();
		sleep_until(now_ns + LOOK_NS, now_ns);
		gate_look();
	}
}
