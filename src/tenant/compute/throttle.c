/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between work and the device, and the waits for it.
 *
 * Nobody sleeps with the meter's lock. Who waits looks again at least every SLEEP_MAX_NS, so limits that are
 * changed or lifted are seen at once, and a process that is asked to go by a signal goes.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/throttle.h"

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "tenant/compute/untracked.h"
#include "tenant/compute/credit.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/work.h"

/* So far the host may run ahead: enough to bridge its own pauses, and all that a limit is late by. */
#define AHEAD_NS 4000000u

/* With others on the device: what must drain before a turn can be handed over. */
#define AHEAD_AMONG_PEERS_NS 2000000u

/* A turn's end that is late by no more is waited for awake. */
#define AWAKE_NS 200000u

/* Beside a slice that goes first: what it may have to wait for. */
#define AHEAD_YIELDING_NS 100000u

/* For a slice that comes at regular times room is made so long before, and kept so long after. */
#define LEAD_NS	     400000u
#define TARDY_NS     200000u

#define STUCK_NS     250000000u /* how long work that should have ended is waited for */
#define SLEEP_MAX_NS 20000000u	/* longest sleep of a waiter */
#define SLEEP_MIN_NS 50000u /* shortest; a timer is late by as much (Linux' slack for a timer) */

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

/* Whether the stream has little enough before it. */
static enum throttle throttle_ahead(struct meter *m, struct stream_state *s, uint64_t estimate_ns,
	uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t ahead = m->is_yielding	 ? AHEAD_YIELDING_NS
			 : m->peer_count ? AHEAD_AMONG_PEERS_NS
					 : AHEAD_NS;
	const struct batch *oldest = &s->batches[s->first];
	uint64_t unknown_ns;

	if (s->drained_ns > now_ns + ahead && (s->pending || s->is_open)) {
		*ret_wake_ns = s->drained_ns - ahead;
		return THROTTLE_TOO_FAR;
	}
	if (s->pending == STREAM_PENDING ||
		(s->pending && now_ns > oldest->due_ns + METER_LATE_NS)) {
		*ret_wake_ns = now_ns + SLEEP_MIN_NS;
		return THROTTLE_TOO_FAR;
	}
	/* One by one, or as much of a long kernel's as fits its estimate would be let through before the first ends. */
	unknown_ns = estimate_ns == ESTIMATE_UNKNOWN_NS ? unknown_since_ns(s) : 0;
	if (unknown_ns) {
		*ret_wake_ns = now_ns + SLEEP_MIN_NS;
		return now_ns < unknown_ns + AWAKE_NS ? THROTTLE_DRAINING : THROTTLE_TOO_FAR;
	}
	return THROTTLE_NONE;
}

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
 * that has saved up budget by that may have one more; and one whose short kernels get less by what each change of
 * turns takes has its turns a little longer.
 */
static uint64_t turn_moment(
	const struct meter *m, uint64_t estimate_ns, uint64_t drained_ns, uint64_t now_ns)
{
	int64_t saved_ns = credit_saved_ns(m, now_ns);
	uint64_t most_ns = estimate_ns / 2 + METER_MORE_NS, early_ns = 0;

	if (m->limits.cores_permille && saved_ns > 0)
		early_ns = most_ns < (uint64_t)saved_ns ? most_ns : (uint64_t)saved_ns;
	return (drained_ns > now_ns ? drained_ns : now_ns) + estimate_ns / 2 - early_ns;
}

/* Whether the slice has the turn, and keeps it for a batch more. */
static enum throttle throttle_for_turn(struct meter *m, struct stream_state *s,
	uint64_t estimate_ns, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t drained = work_end_ns(m);
	bool is_wanted, is_expecting;
	uint64_t until_ns;
	unsigned rank;

	if (!m->has_turns)
		return THROTTLE_NONE;
	*ret_wake_ns = now_ns + 4 * SLEEP_MIN_NS;
	if (m->is_turn_awaited)
		return THROTTLE_TURN_AWAITED;
	rank = work_rank(m, now_ns);
	until_ns = (drained > now_ns ? drained : now_ns) + estimate_ns + METER_BATCH_NS;
	if (m->goes_first) {
		turn_seize(&m->turn, rank, now_ns, until_ns);
		return THROTTLE_NONE;
	}
	is_wanted = m->peer_count && turn_is_wanted(&m->turn, rank, now_ns,
					     turn_moment(m, estimate_ns, drained, now_ns));
	is_expecting = m->is_yielding && expects_better(m, rank, now_ns, ret_wake_ns);
	if (is_wanted || is_expecting) {
		work_end_batches(m, now_ns);
		if (!work_is_idle(m, now_ns)) {
			*ret_wake_ns = drained;
			return drained + AWAKE_NS > now_ns ? THROTTLE_DRAINING : THROTTLE_TOO_FAR;
		}
		(void)turn_release(&m->turn, now_ns);
		log_debug("a turn was released", U64("at_ns", clock_now_ns()),
			U64("ended_ns", s->drained_ns));
	}
	if (is_expecting) {
		turn_leave(&m->turn);
		return THROTTLE_YIELDING;
	}
	if (turn_hold(&m->turn, rank, now_ns, until_ns, ret_wake_ns) == TURN_HELD)
		return THROTTLE_NONE;
	m->is_turn_awaited = true;
	return THROTTLE_NO_TURN;
}

/* While the slice waits for its budget others may have the device. */
static void let_go(struct meter *m, uint64_t now_ns)
{
	if (!m->has_turns || !m->peer_count || m->is_turn_awaited)
		return;
	work_end_batches(m, now_ns);
	if (work_is_idle(m, now_ns))
		turn_leave(&m->turn);
}

/* With when it may be over, or is to be looked at again. */
enum throttle throttle_of(struct meter *m, struct stream_state *s, uint64_t estimate_ns,
	uint64_t now_ns, uint64_t *ret_wake_ns)
{
	enum throttle why;

	work_collect(m, now_ns);
	*ret_wake_ns = now_ns + SLEEP_MAX_NS;
	if (meter_is_suspended(m) || m->is_blocked) {
		let_go(m, now_ns);
		return THROTTLE_SUSPENDED;
	}
	if (!credit_allows(m, s, now_ns, ret_wake_ns)) {
		uint64_t end_ns = work_end_ns(m);

		/* When what is under way is done, some of what was reserved for it may come back. */
		if (end_ns > now_ns && end_ns < *ret_wake_ns)
			*ret_wake_ns = end_ns;
		let_go(m, now_ns);
		return THROTTLE_NO_BUDGET;
	}
	why = throttle_ahead(m, s, estimate_ns, now_ns, ret_wake_ns);
	if (why != THROTTLE_NONE)
		return why;
	return throttle_for_turn(m, s, estimate_ns, now_ns, ret_wake_ns);
}

/* Timers are late by Linux' slack for them, 50 us, and some. */
static void sleep_until(uint64_t wake_ns, uint64_t now_ns)
{
	uint64_t ns = wake_ns > now_ns + SLEEP_MIN_NS ? wake_ns - now_ns : SLEEP_MIN_NS;
	struct timespec rest = {.tv_nsec = (long)(ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS)};

	nanosleep(&rest, NULL);
}

/* For what another slice waits for: the last part of it is waited for awake. */
static void sleep_exactly(uint64_t wake_ns, uint64_t now_ns)
{
	if (wake_ns > now_ns + 3 * SLEEP_MIN_NS)
		sleep_until(wake_ns - 2 * SLEEP_MIN_NS, now_ns);
	else if (wake_ns <= now_ns)
		wake_ns = now_ns + SLEEP_MIN_NS / 5;
	for (unsigned i = 0; i < 1000 && clock_now_ns() < wake_ns; i++)
		lock_pause();
}

/* Without the lock, as long as it takes; with it before and after. */
void throttle_wait(struct stream_state *s, enum throttle why, uint64_t wake_ns, uint64_t now_ns)
{
	struct meter *m = s->meter;
	bool may_poll = m->is_limited && (why == THROTTLE_NO_BUDGET || why == THROTTLE_TOO_FAR);

	s->users++;
	lock_leave(&m->lock);
	if (may_poll && untracked_poll(m, now_ns))
		; /* which took some of the time */
	else if (why == THROTTLE_NO_TURN)
		(void)turn_wait(&m->turn,
			wake_ns < now_ns + SLEEP_MAX_NS ? wake_ns : now_ns + SLEEP_MAX_NS);
	else if (why == THROTTLE_DRAINING)
		sleep_exactly(wake_ns, now_ns);
	else
		sleep_until(wake_ns, now_ns);
	limits_poll();
	lock_enter(&m->lock);
	s->users--;
	if (why == THROTTLE_NO_TURN) {
		m->is_turn_awaited = false;
		log_debug("a wait for the turn ended", U64("began_ns", now_ns),
			U64("until_ns", wake_ns), U64("at_ns", clock_now_ns()));
	}
	if (why == THROTTLE_NO_BUDGET)
		meter_count(&m->books->budget_wait_ns, clock_now_ns() - now_ns);
	else if (why == THROTTLE_NO_TURN || why == THROTTLE_TURN_AWAITED)
		meter_count(&m->books->turn_wait_ns, clock_now_ns() - now_ns);
}

/*
 * Work that does not end may wait for what the program is about to give, on this stream or another: a flag
 * that the host sets, a kernel's counterpart. So waiting for it has an end, and then work is let through now
 * and then; what it took is charged when its end is seen.
 */
bool throttle_is_stuck(
	const struct stream_state *s, enum throttle why, uint64_t *since_ns, uint64_t now_ns)
{
	if ((why != THROTTLE_TOO_FAR && why != THROTTLE_DRAINING) || now_ns < s->drained_ns) {
		*since_ns = 0;
		return false;
	}
	if (!*since_ns)
		*since_ns = now_ns;
	return now_ns > *since_ns + STUCK_NS;
}

void throttle_pass_suspension(struct stream_state *s)
{
	while (meter_is_suspended(s->meter)) {
		uint64_t now_ns = clock_now_ns();

		throttle_wait(s, THROTTLE_SUSPENDED, now_ns + SLEEP_MAX_NS, now_ns);
	}
}
