/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of work that has to wait.
 *
 * No thread sleeps with the meter's lock. A waiting thread polls at least every
 * THROTTLE_SLEEP_MAX_NS, so limits that are changed or lifted are seen at once, and a process that
 * is asked to go by a signal goes.
 */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/wait.h"

#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "policy/unknown.h"
#include "tenant/compute/events.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/turns.h"
#include "tenant/compute/unknowns.h"
#include "tenant/compute/untracked.h"

#define TARDY_NS UINT64_C(5000000) /* by which a process may wake up too late */

/* When work ends that is waited for is an estimate: it may have ended long before. */
#define LOOK_NS UINT64_C(1000000)

/* Timers are late by Linux' slack for them, 50 us, and some. */
static void sleep_until(uint64_t wake_ns, uint64_t now_ns)
{
	uint64_t ns =
		wake_ns > now_ns + THROTTLE_SLEEP_MIN_NS ? wake_ns - now_ns : THROTTLE_SLEEP_MIN_NS;
	struct timespec rest = {
		.tv_nsec = (long)(ns < THROTTLE_SLEEP_MAX_NS ? ns : THROTTLE_SLEEP_MAX_NS)};

	nanosleep(&rest, NULL);
}

/* For what another slice waits for: spins for the last part of it. */
static void sleep_exactly(uint64_t wake_ns, uint64_t now_ns)
{
	if (wake_ns > now_ns + 3 * THROTTLE_SLEEP_MIN_NS)
		sleep_until(wake_ns - 2 * THROTTLE_SLEEP_MIN_NS, now_ns);
	else if (wake_ns <= now_ns)
		wake_ns = now_ns + THROTTLE_SLEEP_MIN_NS / 5;
	for (unsigned i = 0; i < 1000 && clock_now_ns() < wake_ns; i++)
		lock_pause();
}

/* A process that was suspended or stopped meanwhile has not waited for others. */
static void count_wait(struct meter *m, enum throttle why, uint64_t wake_ns, uint64_t since_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (why == THROTTLE_SUSPENDED || now_ns > wake_ns + TARDY_NS)
		credit_pause(m, now_ns - since_ns, now_ns - since_ns, now_ns);
	else if (why == THROTTLE_NO_TURN || why == THROTTLE_YIELDING)
		credit_wait(m, now_ns - since_ns);
}

void wait_until(struct stream_state *s, enum throttle why, uint64_t wake_ns, uint64_t now_ns)
{
	struct meter *m = s->meter;
	bool may_poll =
		m->limits.is_limited && (why == THROTTLE_NO_BUDGET || why == THROTTLE_TOO_FAR);
	uint64_t last_ns = now_ns + THROTTLE_SLEEP_MAX_NS;

	if (why == THROTTLE_SUSPENDED || why == THROTTLE_NO_BUDGET || why == THROTTLE_BEHIND) {
		streams_close_all(m);
		turns_let_go(m, now_ns);
	}
	if (why != THROTTLE_NO_TURN)
		wake_ns = turns_keep(m, wake_ns, now_ns);
	if (why == THROTTLE_TOO_FAR || why == THROTTLE_DRAINING || why == THROTTLE_QUEUED)
		last_ns = now_ns + LOOK_NS;
	s->users++;
	lock_leave(&m->lock);
	if (may_poll && untracked_poll(m, now_ns))
		; /* which took some of the time */
	else if (why == THROTTLE_NO_TURN)
		turns_wait(m, wake_ns < last_ns ? wake_ns : last_ns);
	else if (why == THROTTLE_DRAINING && wake_ns < last_ns)
		sleep_exactly(wake_ns, now_ns);
	else
		sleep_until(wake_ns < last_ns ? wake_ns : last_ns, now_ns);
	limits_poll();
	lock_enter(&m->lock);
	s->users--;
	if (why == THROTTLE_NO_TURN || why == THROTTLE_YIELDING) {
		turns_waited(m, why, clock_now_ns() - now_ns, clock_now_ns());
		log_debug("a wait for the time slice ended", U64("began_ns", now_ns),
			U64("until_ns", wake_ns), U64("at_ns", clock_now_ns()));
	}
	count_wait(m, why, wake_ns < last_ns ? wake_ns : last_ns, now_ns);
	/* relaxed: for people to read */
	if (why == THROTTLE_NO_BUDGET)
		atomic_fetch_add_explicit(
			&m->books->budget_wait_ns, clock_now_ns() - now_ns, memory_order_relaxed);
	else if (why == THROTTLE_NO_TURN || why == THROTTLE_TURN_AWAITED)
		atomic_fetch_add_explicit(
			&m->books->turn_wait_ns, clock_now_ns() - now_ns, memory_order_relaxed);
}

void wait_while_suspended(struct stream_state *s)
{
	while (s->meter->limits.is_suspended) {
		uint64_t now_ns = clock_now_ns();

		wait_until(s, THROTTLE_SUSPENDED, now_ns + THROTTLE_SLEEP_MAX_NS, now_ns);
	}
}

/* So much of the time that it took so far it may be seen to end too late. */
#define BEHIND_PART 8

static bool has_ended(const struct stream_state *s, const CUevent *mark)
{
	if (!mark)
		return stream_state_is_done(s);
	return !*mark || events_query(*mark) != CUDA_ERROR_NOT_READY;
}

void wait_behind(struct stream_state *s)
{
	struct meter *m = s->meter;
	uint64_t since_ns = clock_now_ns(), now_ns = since_ns, step_ns;
	CUevent *mark = m->turns.peer_count ? stream_state_mark(s) : NULL;
	/* Another thread may give the stream a copy meanwhile, or be here as well. */
	uint64_t patience_ns = s->patience_ns;
	uint32_t passed = s->passed;

	while (m->turns.peer_count && !has_ended(s, mark)) {
		s->is_behind = now_ns >= since_ns + patience_ns;
		if (s->is_behind)
			break;
		step_ns = max_u64((now_ns - since_ns) / BEHIND_PART, THROTTLE_SLEEP_MIN_NS);
		wait_until(s, THROTTLE_BEHIND, now_ns + min_u64(step_ns, LOOK_NS), now_ns);
		now_ns = clock_now_ns();
		streams_collect(m, now_ns);
		turns_note_done(m, now_ns);
	}
	if (s->passed == passed)
		s->patience_ns = 0;
}

void wait_for_unknown(struct stream_state *s)
{
	struct meter *m = s->meter;
	uint64_t most_ns = m->turns.peer_count ? UNKNOWNS_WAIT_NS : UNKNOWNS_LOOK_NS;
	uint64_t word = m->unknowns.word, now_ns = clock_now_ns(), end_ns = now_ns + most_ns;

	while (m->unknowns.word == word && stream_state_has_unknown(s) && now_ns < end_ns) {
		struct timespec rest = {.tv_nsec = (long)(unknown_look_ns(word, now_ns) - now_ns)};

		lock_leave(&m->lock);
		nanosleep(&rest, NULL);
		lock_enter(&m->lock);
		now_ns = clock_now_ns();
		streams_collect(m, now_ns);
	}
	turns_note_done(m, now_ns);
}
