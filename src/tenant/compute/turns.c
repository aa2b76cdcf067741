/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of a meter. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/turns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mark.h"
#include "policy/share.h"
#include "tenant/compute/estimate.h"
#include "tenant/compute/meters.h"

/* A slice waits for the turns of all others no longer than this for each slice, itself counted in. */
#define WAIT_NS	    UINT64_C(6000000)
#define HANDOVER_NS UINT64_C(1000000) /* with what a batch may be longer than expected */

#define LATE_NS	    UINT64_C(300000) /* after so long late work is looked at again */
/* For so long a turn is kept for work that was never seen before, or whose end nobody waits for any more. */
#define UNKNOWN_NS UINT64_C(25000000)
/*
 * And at least for work that is waited for where nobody can look at it. A process that ends or is
 * stopped there keeps others for as long.
 */
#define AWAITED_NS UINT64_C(100000000)

/*
 * A slice may have had nothing of its share for so long before it tells who had too much, and waits
 * as long for one turn of another: kernels of 0.3 s are no offence. What credit keeps is more, and
 * so is what it may lose of 10 s (SECURITY.md).
 */
#define JUDGED_NS      UINT64_C(400000000)
#define JUDGED_MOST_NS UINT64_C(180000000) /* of the share */
#define KNOWN_PART     4 /* of that is enough to tell it of who had too much before */
#define AGAIN_NS       UINT64_C(50000000) /* of waiting, since others were last judged */

/*
 * Programs that wait for each of their steps let the device rest in between. A turn is kept for
 * twice such a pause, as the last ones were: who loses it has half a turn, and the next one in its
 * old place has that again and again.
 */
#define PAUSE_NS UINT64_C(1000000) /* at most */

/*
 * From the moment a slice has the turn until its first kernel begins nobody works (H200: 0.04 for
 * the launch, and 0.165).
 */
#define CHANGE_NS INT64_C(200000)

#define TRY_NS	  UINT64_C(1000000000) /* between two tries to open the record */
#define NAMES	  16		       /* that are tried each time */
#define REGULAR	  3 /* pauses of the same length, within an eighth, are no accident */

/*
 * The random part of the record's name: the same for all processes of the slice, and known to
 * nobody else beforehand. Each device has one of its own, as everybody can read the name of a
 * record that is there. not: another one than this.
 */
static uint64_t token(const struct meter *m, uint64_t not )
{
	uint64_t seen = not, drawn = mark_random() | 1;

	/* relaxed: of several new ones any will do, and all take the same */
	if (atomic_compare_exchange_strong_explicit(&m->books->turn.name_token, &seen, drawn,
		    memory_order_relaxed, memory_order_relaxed))
		return drawn;
	return seen;
}

static int open_named(struct meter *m, const char *path, const char *name, uint64_t now_ns)
{
	return turn_open(&m->turns.turn, path, m->device->uuid, name, state.slot, now_ns);
}

/* Another user who made a file of the name first would keep the slice from its turns: then it has another one. */
static int open_by_token(struct meter *m, const char *path, uint64_t now_ns)
{
	const char *name = quota_slice_name();
	char full[TURN_NAME_BYTES];
	uint64_t drawn = 0;
	int r = -EEXIST;

	for (unsigned i = 0; i < NAMES && r == -EEXIST; i++) {
		drawn = token(m, drawn);
		snprintf(full, sizeof(full), "%.63s.%016llx", *name ? name : "region",
			(unsigned long long)drawn);
		r = open_named(m, path, full, now_ns);
	}
	return r;
}

static void open_record(struct meter *m, uint64_t now_ns)
{
	const char *path = quota_turns_path();
	int r;

	if (!path)
		return;
	m->turns.turn.books = &m->books->turn;
	r = open_by_token(m, path, now_ns);
	/* Where the folder is closed to us, the operator has made a record for the slice, by its name. */
	if (r == -EROFS || r == -EACCES)
		r = open_named(m, path, quota_slice_name(), now_ns);
	m->turns.is_open = r == 0;
	/*
	 * A program can make that fail. Where there is no folder, or none that can be trusted, the
	 * machine has no turns.
	 */
	m->turns.is_denied = r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EPERM;
	if (r < 0)
		log_warn("no time slices can be had on a device, so the time of other slices "
			 "counts, too",
			STR("device", m->device->uuid), STR("folder", path),
			STR("why", strerror(-r)));
}

/* The fewer there are, the longer their turns: each change takes some of the device's time. */
static uint64_t turn_ns(unsigned peer_count)
{
	return peer_count ? WAIT_NS * (peer_count + 1) / peer_count - HANDOVER_NS - THROTTLE_MORE_NS
			  : WAIT_NS;
}

void turns_poll(struct meter *m, uint64_t now_ns)
{
	unsigned best;

	if (!m->turns.tried_ns || (m->turns.is_denied && now_ns > m->turns.tried_ns + TRY_NS)) {
		m->turns.tried_ns = now_ns;
		open_record(m, now_ns);
	}
	m->turns.is_due = m->turns.is_awaited;
	if (!m->turns.is_open || m->turns.is_awaited)
		return;
	m->turns.peer_count = turn_count_peers(&m->turns.turn, now_ns);
	turn_set_times(&m->turns.turn,
		turn_ns(m->turns.peer_count) * m->limits.granted.weight / SHARE_DEFAULT_WEIGHT, 0);
	best = m->turns.turn.best_rank / TURN_RANKS;
	m->turns.is_yielding = m->turns.peer_count && best < m->limits.granted.priority;
	m->turns.goes_first = m->turns.peer_count && best > m->limits.granted.priority;
}

static void note_time(struct rhythm *r, uint64_t passed_ns)
{
	uint64_t error_ns =
		passed_ns > r->period_ns ? passed_ns - r->period_ns : r->period_ns - passed_ns;

	r->regular = error_ns < r->period_ns / 8 ? r->regular + 1 : 0;
	r->period_ns = r->regular ? (3 * r->period_ns + passed_ns) / 4 : passed_ns;
}

/* When it comes again, if it does so regularly; 0: nobody knows. */
static uint64_t next_time(const struct rhythm *r, uint64_t now_ns)
{
	return r->regular >= REGULAR ? now_ns + r->period_ns : 0;
}

void turns_note_burst(struct meter *m, uint64_t now_ns)
{
	note_time(&m->turns.bursts, now_ns - m->turns.burst_ns);
	m->turns.burst_ns = now_ns;
	if (m->turns.goes_first)
		turn_say_next(&m->turns.turn, next_time(&m->turns.bursts, now_ns));
}

static void note_pause(struct meter *m, uint64_t now_ns)
{
	if (m->turns.idle_ns)
		note_time(&m->turns.pauses, now_ns - m->turns.idle_ns);
	m->turns.idle_ns = 0;
}

/* For how long a turn is kept for work that is to come, among slices of one priority. */
static uint64_t keep_ns(const struct meter *m)
{
	uint64_t pause_ns = m->turns.pauses.period_ns;

	if (pause_ns > PAUSE_NS || m->turns.goes_first || m->turns.is_yielding)
		return 0;
	return 2 * pause_ns < PAUSE_NS ? 2 * pause_ns : PAUSE_NS;
}

/* The slice's rank for turns: its priority, and whether it borrows. */
static unsigned rank_of(const struct meter *m)
{
	/* What others have had of its cores it gets before all of them. */
	if (m->credit.is_owed)
		return 0;
	return m->limits.granted.priority * TURN_RANKS + m->credit.is_borrowing;
}

/*
 * Who gave its turn back before it was over has one change more for it. What that takes was waited
 * for; and it was charged, as nobody sees when the device begins, but is not of what the slice is
 * sure of.
 */
static void note_change(struct meter *m, uint64_t now_ns)
{
	m->turns.has_waited = false;
	if (!m->turns.turn.is_cut)
		return;
	m->turns.turn.is_cut = false;
	credit_wait(m, CHANGE_NS);
	credit_return(m, CHANGE_NS, now_ns);
}

static uint64_t judged_ns(const struct meter *m)
{
	uint64_t ns = JUDGED_NS * m->limits.granted.cores_permille / SHARE_WHOLE_PERMILLE;

	return ns < JUDGED_MOST_NS ? ns : JUDGED_MOST_NS;
}

static uint64_t patience_ns(const struct meter *m)
{
	uint32_t permille = m->limits.granted.cores_permille;

	/* Without a promise it lacks nothing. */
	return permille ? turn_order_patience_ns(m->credit.saved_ns, judged_ns(m), permille)
			: TURN_PATIENCE_NS;
}

uint64_t turns_queued_ns(const struct meter *m, uint64_t estimate_ns)
{
	return estimate_ns == ESTIMATE_UNKNOWN_NS ? UNKNOWN_NS : turns_piece_ns(m, estimate_ns);
}

uint64_t turns_piece_ns(const struct meter *m, uint64_t estimate_ns)
{
	return estimate_ns < m->turns.careful_ns && estimate_ns != ESTIMATE_UNKNOWN_NS
		       ? m->turns.careful_ns
		       : estimate_ns;
}

enum throttle turns_ask(struct meter *m, uint64_t estimate_ns, uint64_t busy_until_ns,
	uint64_t queued_until_ns, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	struct throttle_turn turn = {.now_ns = now_ns, .busy_until_ns = busy_until_ns};
	enum throttle why = THROTTLE_NONE;
	enum throttle_step step;
	uint64_t until_ns, moment_ns;
	unsigned rank;

	if (!m->turns.is_open)
		return THROTTLE_NONE;
	note_pause(m, now_ns);
	*ret_wake_ns = now_ns + 4 * THROTTLE_SLEEP_MIN_NS;
	if (m->turns.is_awaited)
		return THROTTLE_TURN_AWAITED;
	rank = rank_of(m);
	moment_ns = throttle_turn_moment(estimate_ns, m->credit.saved_ns,
		m->credit.is_owed ? m->credit.owed_ns : 0, queued_until_ns, now_ns);
	until_ns = (queued_until_ns > now_ns ? queued_until_ns : now_ns) + METER_BATCH_NS +
		   turns_queued_ns(m, estimate_ns);
	if (m->turns.goes_first) {
		turn_seize(&m->turns.turn, rank, now_ns, until_ns);
		return THROTTLE_NONE;
	}
	if (m->turns.peer_count)
		turn.is_wanted = turn_is_wanted(&m->turns.turn, rank, now_ns, moment_ns, until_ns);
	/*
	 * A slice that goes first and comes at regular times is to find the device free: work that is under
	 * way, and changing over, would delay it by half a ms.
	 */
	if (m->turns.is_yielding)
		turn.next_ns = turn_next_ns(
			&m->turns.turn, rank, THROTTLE_LEAD_NS, THROTTLE_TARDY_NS, now_ns);
	if (turn.is_wanted || turn.next_ns)
		turn.is_idle = streams_drain(m, now_ns);
	step = throttle_turn(&turn, &why, ret_wake_ns);
	if (step == THROTTLE_RELEASE || step == THROTTLE_LEAVE) {
		log_debug("a time slice is given back", U64("at_ns", clock_now_ns()),
			U64("ended_ns", busy_until_ns));
		(void)turn_release(&m->turns.turn, now_ns);
	}
	if (step == THROTTLE_LEAVE)
		turn_leave(&m->turns.turn);
	if (why != THROTTLE_NONE)
		return why;
	turn_set_patience(&m->turns.turn, patience_ns(m));
	if (turn_hold(&m->turns.turn, rank, now_ns, until_ns, ret_wake_ns) == TURN_HELD) {
		if (m->turns.has_waited)
			note_change(m, now_ns);
		return THROTTLE_NONE;
	}
	m->turns.has_waited = true;
	m->turns.is_awaited = true;
	return THROTTLE_NO_TURN;
}

void turns_wait(struct meter *m, uint64_t until_ns)
{
	(void)turn_wait(&m->turns.turn, until_ns);
}

static enum turn_lack lack_of(const struct meter *m)
{
	if (m->credit.owed_ns < judged_ns(m))
		return TURN_LACKS_LITTLE;
	return m->credit.lack_ns < judged_ns(m) ? TURN_LACKS : TURN_LACKS_ANEW;
}

/*
 * A slice that has waited for others until they had so much of its share tells who had too much. It
 * is well before credit can keep no more of what is to come back, as from then on it would be lost.
 */
static void judge(struct meter *m, uint64_t now_ns)
{
	/* relaxed: a moment late does no harm */
	uint64_t served_ns = atomic_load_explicit(&m->books->elapsed_ns, memory_order_relaxed);

	turn_note_served(&m->turns.turn, served_ns - m->turns.served_ns, credit_due_permille(m));
	m->turns.served_ns = served_ns;
	if (!m->credit.is_owed) {
		turn_forgive(&m->turns.turn);
	} else {
		enum turn_lack lack = lack_of(m);

		if (m->credit.owed_ns < judged_ns(m) / KNOWN_PART ||
			m->turns.waited_ns < AGAIN_NS || !turn_blame(&m->turns.turn, lack, now_ns))
			return;
		credit_blamed(m);
	}
	m->turns.waited_ns = 0;
}

void turns_waited(struct meter *m, enum throttle why, uint64_t waited_ns, uint64_t now_ns)
{
	if (why == THROTTLE_NO_TURN)
		m->turns.is_awaited = false;
	/* Whoever waits at each poll would never learn who came and who went. */
	if (m->turns.is_due && !m->turns.is_awaited)
		turns_poll(m, now_ns);
	m->turns.waited_ns += waited_ns;
	judge(m, now_ns);
}

uint64_t turns_keep(struct meter *m, uint64_t wake_ns, uint64_t now_ns)
{
	uint64_t end_ns = streams_end_ns(m), announced_ns = m->turns.turn.held_until_ns;

	/* Of what should not have ended yet the end was announced. */
	if (!m->turns.is_open || !m->turns.peer_count || m->turns.is_awaited || end_ns > wake_ns ||
		streams_are_at_rest(m, now_ns))
		return wake_ns;
	if (end_ns < now_ns + LATE_NS)
		end_ns = now_ns + LATE_NS;
	turn_prolong(&m->turns.turn, rank_of(m), now_ns, end_ns);
	/*
	 * Others wait for what nobody knew, and it ran on all the same: who has more threads at the
	 * gate is not charged less for it.
	 */
	if (m->unknowns.word)
		m->turns.turn.held_until_ns = announced_ns;
	return end_ns < wake_ns ? end_ns : wake_ns;
}

void turns_wait_for_work(struct meter *m, uint64_t now_ns)
{
	uint64_t end_ns;

	if (!m->turns.is_open || !m->turns.peer_count || m->turns.is_awaited ||
		streams_are_at_rest(m, now_ns))
		return;
	/* It may have been announced to take longer. */
	end_ns = streams_end_ns(m);
	turn_prolong(&m->turns.turn, rank_of(m), now_ns,
		end_ns > now_ns + AWAITED_NS ? end_ns : now_ns + AWAITED_NS);
}

void turns_let_go(struct meter *m, uint64_t now_ns)
{
	if (!m->turns.is_open || !m->turns.peer_count || m->turns.is_awaited)
		return;
	if (streams_drain(m, now_ns))
		turn_leave(&m->turns.turn);
}

void turns_note_done(struct meter *m, uint64_t now_ns)
{
	uint64_t end_ns = streams_end_ns(m);

	meter_say_busy_since(m, streams_begin_ns(m, now_ns));
	if (!streams_are_idle(m, now_ns)) {
		if (m->turns.is_open && !m->turns.is_awaited && !m->waits)
			turn_shorten(&m->turns.turn, now_ns,
				(end_ns > now_ns ? end_ns : now_ns) + UNKNOWN_NS);
		return;
	}
	meter_say_busy_until(m, 0);
	if (!m->turns.idle_ns)
		m->turns.idle_ns = now_ns;
	/* What comes so long after it was done, and not at regular times: others' work may delay it. */
	if (m->turns.goes_first && m->turns.pauses.regular >= REGULAR &&
		m->turns.pauses.regular > m->turns.bursts.regular)
		turn_say_next(&m->turns.turn, next_time(&m->turns.pauses, m->turns.idle_ns));
	if (!m->turns.is_open || m->turns.is_awaited)
		return;
	if (turn_is_wanted(&m->turns.turn, rank_of(m), now_ns, now_ns, now_ns))
		(void)turn_release(&m->turns.turn, now_ns);
	else
		turn_idle(&m->turns.turn, keep_ns(m), now_ns);
}
