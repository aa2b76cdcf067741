/* SPDX-License-Identifier: Apache-2.0 */
/* Why work has to wait before it reaches the device. */
#include "policy/throttle.h"

#include "base/bits.h"

/* So far the host may run ahead: enough to bridge its own pauses, and all that a limit is late by. */
#define AHEAD_NS UINT64_C(4000000)

/* With other slices on the device: what must drain before a turn can be handed over. */
#define AHEAD_AMONG_PEERS_NS UINT64_C(2000000)

/* Beside a slice that goes first: what it may have to wait for. */
#define AHEAD_YIELDING_NS UINT64_C(100000)

/* Spin instead of sleeping if the turn ends within this time. */
#define SPIN_NS UINT64_C(200000)

/* By so much others' time slices, and changing over to them and back, make a batch late (H200: 2 ms, and 0.15 each way). */
#define OTHERS_NS UINT64_C(2300000)

/*
 * By so much a turn is longer at most, by what is owed. Others wait for it, and are owed that. A record that is in the way for
 * 20 ms between two turns, and is within all other measures, has cost a slice of 60 % six points with 8 ms.
 */
#define LONGER_NS UINT64_C(24000000)

#define STUCK_NS  UINT64_C(250000000) /* how long work that should have ended is waited for */

static uint64_t ahead_ns(const struct throttle_work *w)
{
	if (w->is_yielding)
		return AHEAD_YIELDING_NS;
	return w->has_peers ? AHEAD_AMONG_PEERS_NS : AHEAD_NS;
}

static uint64_t late_ns(const struct throttle_work *w)
{
	return THROTTLE_LATE_NS + (w->is_shared ? OTHERS_NS : 0);
}

/* Whether the stream has little enough before it. */
static enum throttle throttle_stream(const struct throttle_work *w, uint64_t *ret_wake_ns)
{
	uint64_t ahead = ahead_ns(w);

	*ret_wake_ns = w->now_ns + THROTTLE_SLEEP_MIN_NS;
	if (w->is_careful && w->has_work)
		return THROTTLE_TOO_FAR;
	if (w->has_work && w->drained_ns > w->now_ns + ahead) {
		*ret_wake_ns = w->drained_ns - ahead;
		return THROTTLE_TOO_FAR;
	}
	if (w->is_full || (w->due_ns && w->now_ns > w->due_ns + late_ns(w)))
		return THROTTLE_TOO_FAR;
	/*
	 * One by one, or as much of a long kernel's as fits its estimate would be let through before the
	 * first ends.
	 */
	if (w->is_unknown && w->unknown_since_ns)
		return w->now_ns < w->unknown_since_ns + SPIN_NS ? THROTTLE_DRAINING
								 : THROTTLE_TOO_FAR;
	if (w->has_peers && w->queued_until_ns > w->now_ns + ahead) {
		*ret_wake_ns = w->queued_until_ns - ahead;
		return THROTTLE_QUEUED;
	}
	return THROTTLE_NONE;
}

enum throttle throttle_work(const struct throttle_work *w, uint64_t *ret_wake_ns)
{
	*ret_wake_ns = w->now_ns + THROTTLE_SLEEP_MAX_NS;
	if (w->is_suspended)
		return THROTTLE_SUSPENDED;
	if (!w->credit_ready_ns)
		return throttle_stream(w, ret_wake_ns);
	*ret_wake_ns = w->credit_ready_ns;
	/* When what is under way is done, some of what was reserved for it may come back. */
	if (w->busy_until_ns > w->now_ns && w->busy_until_ns < w->credit_ready_ns)
		*ret_wake_ns = w->busy_until_ns;
	return THROTTLE_NO_BUDGET;
}

enum throttle_step throttle_turn(
	const struct throttle_turn *t, enum throttle *ret_why, uint64_t *ret_wake_ns)
{
	if (!t->is_wanted && !t->next_ns)
		return THROTTLE_KEEP;
	if (!t->is_idle) {
		*ret_wake_ns = t->busy_until_ns;
		*ret_why = t->busy_until_ns + SPIN_NS > t->now_ns ? THROTTLE_DRAINING
								  : THROTTLE_TOO_FAR;
		return THROTTLE_DRAIN;
	}
	if (!t->next_ns)
		return THROTTLE_RELEASE;
	*ret_wake_ns = t->next_ns + THROTTLE_TARDY_NS;
	*ret_why = THROTTLE_YIELDING;
	return THROTTLE_LEAVE;
}

uint64_t throttle_turn_moment(uint64_t estimate_ns, int64_t saved_ns, uint64_t owed_ns,
	uint64_t busy_until_ns, uint64_t now_ns)
{
	uint64_t most_ns = estimate_ns / 2 + THROTTLE_MORE_NS, early_ns = 0;

	if (saved_ns > 0)
		early_ns = most_ns < (uint64_t)saved_ns ? most_ns : (uint64_t)saved_ns;
	if (owed_ns > LONGER_NS)
		owed_ns = LONGER_NS;
	return (busy_until_ns > now_ns ? busy_until_ns : now_ns) + estimate_ns / 2 - early_ns -
	       owed_ns;
}

bool throttle_is_stuck(enum throttle why, uint64_t drained_ns, uint64_t moved_ns, uint64_t now_ns,
	uint64_t *since_ns)
{
	if ((why != THROTTLE_TOO_FAR && why != THROTTLE_DRAINING) || now_ns < drained_ns) {
		*since_ns = 0;
		return false;
	}
	if (!*since_ns)
		*since_ns = now_ns;
	return now_ns > max_u64(moved_ns, *since_ns) + STUCK_NS;
}
