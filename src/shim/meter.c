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
#include "base/log.h"
#include "region/busy.h"
#include "shim/gate.h"

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

/* A batch that is so late was guessed wrongly, and until it is done nothing more is given. */
#define LATE_NS	      500000u

#define LOOK_NS	      20000000u /* longest sleep of a waiter */
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

/* What the purse owes is the slice's debt, and what it has too much of goes back. */
static void balance_purse(struct meter *m, uint64_t now_ns)
{
	struct budget_rate rate = ceiling_rate(m);
	int64_t surplus = m->purse_ns < 0 ? m->purse_ns : m->purse_ns - METER_PURSE_NS;

	if (!m->is_limited)
		m->purse_ns = 0;
	else if (m->purse_ns < 0 || surplus > METER_PURSE_NS) {
		spend(&m->books->ceiling, &rate, now_ns, -surplus);
		m->purse_ns -= surplus;
	}
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
	return m->terms.priority * 2u + is_borrowing(m, now_ns);
}

static void charge(struct meter *m, const struct track_span *span, uint64_t now_ns)
{
	uint64_t took = span->end_ns - span->start_ns;
	uint64_t fresh = busy_mark(m->books, span->start_ns, span->end_ns);
	struct budget_rate rate = sure_rate(m);

	if (took) {
		int64_t error = (int64_t)(fresh * 1000 / took) - m->overlap_permille;

		m->overlap_permille = (uint32_t)(m->overlap_permille + error / OVERLAP_SHARE);
	}
	if (span->is_measured)
		guess_learn(&span->mix, took);
	m->purse_ns += span->reserved_ns - (int64_t)fresh;
	balance_purse(m, now_ns);
	m->charged_ns += fresh;
	add(&m->books->busy_ns, fresh);
	if (is_borrowing(m, now_ns))
		add(&m->books->lent_ns, fresh);
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

static bool has_pending(const struct meter *m)
{
	for (unsigned i = 0; i < m->track_high; i++)
		if (m->tracks[i].pending)
			return true;
	return false;
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
	if (has_pending(m) || drained_ns(m) > now_ns)
		return;
	say_busy_until(m, 0);
	if (!m->has_turns || m->is_turn_awaited)
		return;
	if (turn_is_wanted(&m->turn, rank_of(m, now_ns), now_ns))
		(void)turn_release(&m->turn, now_ns);
	else
		turn_idle(&m->turn, now_ns);
}

/* Takes a purse full out of the slice's budget; else false, with when to ask again. */
static bool has_budget(struct meter *m, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct budget_rate rate = ceiling_rate(m);
	uint64_t word;

	if (!m->is_limited || m->purse_ns > 0)
		return true;
	/* relaxed: as in spend() */
	word = atomic_load_explicit(&m->books->ceiling, memory_order_relaxed);
	do {
		uint64_t wait_ns = budget_wait_ns(word, &rate, now_ns);

		if (wait_ns) {
			*ret_wake_ns = now_ns + (wait_ns < LOOK_NS ? wait_ns : LOOK_NS);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&m->books->ceiling, &word,
		budget_spend(word, &rate, now_ns, METER_PURSE_NS), memory_order_relaxed,
		memory_order_relaxed));
	m->purse_ns += METER_PURSE_NS;
	return true;
}

/* Whether the stream has little enough before it. */
static bool is_near(struct meter *m, struct track *t, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t ahead = m->other_count ? AHEAD_AMONG_OTHERS_NS : AHEAD_NS;
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
	TOO_FAR,     /* what was given before has to get further */
	NO_TURN,     /* the thread that finds this waits for the turn */
	TURN_AWAITED /* another thread waits for it */
};

/* Whether the slice has the turn, and keeps it for a batch more. */
static enum hindrance turn_hindrance(struct meter *m, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t drained = drained_ns(m);
	unsigned rank;

	if (!m->has_turns)
		return FREE;
	*ret_wake_ns = now_ns + 4 * POLL_NS;
	if (m->is_turn_awaited)
		return TURN_AWAITED;
	rank = rank_of(m, now_ns);
	if (m->other_count && turn_is_wanted(&m->turn, rank, now_ns)) {
		if (has_pending(m) || drained > now_ns) {
			*ret_wake_ns = drained;
			return TOO_FAR;
		}
		(void)turn_release(&m->turn, now_ns);
	}
	if (turn_hold(&m->turn, rank, now_ns, (drained > now_ns ? drained : now_ns) + BATCH_NS,
		    ret_wake_ns) == TURN_HELD)
		return FREE;
	m->is_turn_awaited = true;
	return NO_TURN;
}

/* While the slice waits for its budget others may have the device. */
static void let_go(struct meter *m, uint64_t now_ns)
{
	if (m->has_turns && m->other_count && !m->is_turn_awaited && !has_pending(m) &&
		drained_ns(m) <= now_ns)
		turn_leave(&m->turn);
}

/* With when it may be over, or is to be looked at again. */
static enum hindrance hindrance(
	struct meter *m, struct track *t, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	meter_settle(m, now_ns);
	*ret_wake_ns = now_ns + LOOK_NS;
	if (m->terms.is_suspended || m->is_blocked) {
		let_go(m, now_ns);
		return SUSPENDED;
	}
	if (!has_budget(m, now_ns, ret_wake_ns)) {
		let_go(m, now_ns);
		return NO_BUDGET;
	}
	if (!is_near(m, t, now_ns, ret_wake_ns))
		return TOO_FAR;
	return turn_hindrance(m, now_ns, ret_wake_ns);
}

static void sleep_until(uint64_t wake_ns, uint64_t now_ns)
{
	uint64_t ns = wake_ns > now_ns + POLL_NS ? wake_ns - now_ns : POLL_NS;
	struct timespec rest = {.tv_nsec = (long)(ns < LOOK_NS ? ns : LOOK_NS)};

	nanosleep(&rest, NULL);
}

/* Without the lock, as long as it takes; with it before and after. */
static void wait_for(struct meter *m, enum hindrance why, uint64_t wake_ns, uint64_t now_ns)
{
	lock_leave(&m->lock);
	if (why == NO_TURN)
		(void)turn_wait(&m->turn, wake_ns < now_ns + LOOK_NS ? wake_ns : now_ns + LOOK_NS);
	else
		sleep_until(wake_ns, now_ns);
	gate_look();
	lock_enter(&m->lock);
	if (why == NO_TURN)
		m->is_turn_awaited = false;
	if (why == NO_BUDGET)
		add(&m->books->budget_wait_ns, clock_now_ns() - now_ns);
	else if (why == NO_TURN || why == TURN_AWAITED)
		add(&m->books->turn_wait_ns, clock_now_ns() - now_ns);
}

/* Whether the open batch takes more. */
static bool has_room(struct track *t, uint64_t now_ns)
{
	return t->is_open && track_batch(t)->expected_ns < BATCH_NS &&
	       now_ns < t->begun_ns + BATCH_AGE_NS;
}

/* With the lock. */
static void open_batch(struct meter *m, struct track *t, uint64_t now_ns)
{
	enum hindrance why;
	uint64_t wake_ns;

	if (!track_is_continued(t, now_ns))
		meter_end_batch(t, now_ns, false);
	while (!has_room(t, now_ns)) {
		meter_end_batch(t, now_ns, true);
		why = hindrance(m, t, now_ns, &wake_ns);
		if (why == FREE && !t->is_open) {
			if (!track_is_continued(t, now_ns))
				meter_end_batch(t, now_ns, false);
			track_open(t, now_ns);
			return;
		}
		wait_for(m, why, wake_ns, now_ns);
		now_ns = clock_now_ns();
	}
}

static void expect(struct meter *m, struct track *t, uint32_t guess, uint64_t now_ns)
{
	struct batch *b = track_batch(t);
	bool is_known;
	uint64_t ns = guess_ns(guess, &is_known);
	int64_t reserve = (int64_t)(ns * m->overlap_permille / 1000);

	b->expected_ns += ns;
	b->reserved_ns += reserve;
	b->launches++;
	guess_mix_add(&b->mix, guess);
	m->purse_ns -= reserve;
	if (m->purse_ns < -METER_PURSE_NS)
		balance_purse(m, now_ns);
	t->drained_ns = (t->drained_ns > now_ns ? t->drained_ns : now_ns) + ns;
	t->last_ns = now_ns;
	m->launches++;
}

void meter_admit(struct track *t, uint32_t guess)
{
	struct meter *m = t->meter;
	uint64_t now_ns;

	lock_enter(&m->lock);
	now_ns = clock_now_ns();
	if (!has_room(t, now_ns) || now_ns > t->last_ns + TRACK_PAUSE_NS) {
		open_batch(m, t, now_ns);
		now_ns = clock_now_ns();
		m->has_launched = true;
		add(&m->books->launches, m->launches);
		m->launches = 0;
	}
	expect(m, t, guess, now_ns);
	lock_leave(&m->lock);
}

void meter_given(struct track *t)
{
	struct meter *m = t->meter;
	uint64_t now_ns;

	lock_enter(&m->lock);
	now_ns = clock_now_ns();
	t->last_ns = now_ns;
	if (t->is_open && track_batch(t)->expected_ns >= BATCH_NS) {
		meter_end_batch(t, now_ns, true);
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
		is_suspended = m->terms.is_suspended;
		lock_leave(&m->lock);
		if (!is_suspended)
			return;
		now_ns = clock_now_ns();
		sleep_until(now_ns + LOOK_NS, now_ns);
		gate_look();
	}
}
