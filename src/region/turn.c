/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: one slice at a time lets its batches run on a device.
 *
 * Two slices never both believe that they hold the turn, because
 * - who claims says so and then looks at the others, so of two that claim at least one sees the other;
 * - whoever stops counting does so by the clock: who judges reads the clock before the record, and who goes
 *   on stores the new time before it reads the clock. In time means that every judge sees the new time.
 * tests/model/turn.pml is the protocol as a model, and tests/model/turn_wake.pml how who waits is woken.
 */
#include "region/turn.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "region/turn_list.h"
#include "region/turn_owner.h"
#include "region/turn_word.h"

#define BEAT_NS	  UINT64_C(2000000) /* who waits says so again: well within TURN_WISH_NS */
#define POLL_NS	  UINT64_C(500000)  /* a holder polls who waits */
#define BETTER_NS UINT64_C(50000)   /* and where one is about who would go first */
#define PEERS_NS  UINT64_C(5000000) /* turn_count_peers() polls */
#define SOON_NS	  UINT64_C(50000)   /* another process of ours is at it: some us */
#define AGAIN_NS  UINT64_C(20000)   /* the first in line met another's claim */

static int keep_errno(int r, int saved)
{
	errno = saved;
	return r;
}

/* Whoever claims or holds the turn beside the other one is as much in the way. */
static int wait_for(
	struct turn *t, int other, uint64_t now_ns, uint64_t poll_ns, uint64_t *ret_poll_ns)
{
	bool is_taken = other >= 0 && turn_order_state(&t->peers[other], now_ns) >= TURN_CLAIM;

	t->awaited = other;
	for (unsigned i = 0; i < t->peer_count; i++)
		t->peers[i].doubt.is_awaited =
			(int)i == other ||
			(is_taken && turn_order_state(&t->peers[i], now_ns) >= TURN_CLAIM);
	*ret_poll_ns = poll_ns;
	return TURN_E_WAIT;
}

static void note_others(struct turn *t, uint64_t now_ns)
{
	if (turn_order_is_contended(t->peers, t->peer_count, now_ns))
		t->others_ns = now_ns;
}

static bool has_turn(const struct turn *t, uint64_t now_ns)
{
	return turn_counts(turn_load(&t->books->word), TURN_HOLD, now_ns);
}

/* Reads those that are known, and notes what they say for the reader's wish (NULL: it has none). */
static void poll_known(struct turn *t, const struct turn_wish *wish, bool is_all, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns > t->polled_ns ? now_ns - t->polled_ns : 0;

	t->polled_ns = now_ns;
	/* relaxed: this slice's own */
	turn_order_note_room(&t->room, t->peers, t->peer_count,
		atomic_load_explicit(&t->own->face.rank, memory_order_relaxed),
		!wish && has_turn(t, now_ns), elapsed_ns);
	turn_record_read_peers(t, is_all, now_ns);
	for (unsigned i = 0; i < t->peer_count; i++)
		turn_order_note(&t->peers[i], wish, elapsed_ns, now_ns);
	note_others(t, now_ns);
	t->alive_count = turn_order_count_alive(t->peers, t->peer_count, &t->best_rank);
}

/* The same, of all others that are there. */
static void poll_peers(struct turn *t, const struct turn_wish *wish, uint64_t now_ns)
{
	turn_list_look(t, now_ns);
	poll_known(t, wish, false, now_ns);
}

/* Says, or goes on saying, that the slice wants the turn. False where another process has gone on. */
static bool say_wish(struct turn *t, uint64_t *word, unsigned rank, uint64_t now_ns)
{
	if (!turn_counts(*word, TURN_WANT, now_ns))
		turn_set(&t->books->since_ns, now_ns);
	turn_set(&t->own->face.ticket_ns, turn_get(&t->books->since_ns));
	/* relaxed: as in turn_set() */
	atomic_store_explicit(&t->own->face.rank, rank, memory_order_relaxed);
	return turn_word_change(t, word, TURN_WORD(TURN_WANT, now_ns + TURN_WISH_NS));
}

/* While others may not have found us, they are not to blame. */
static const struct turn_wish *blamed_for(
	const struct turn *t, const struct turn_wish *wish, bool is_new, uint64_t now_ns)
{
	return is_new || turn_word_is_tampered(t, now_ns) ? NULL : wish;
}

/* Waits for a slice that stands in the way. */
static int wait_in_line(
	struct turn *t, const struct turn_line *line, uint64_t now_ns, uint64_t *ret_poll_ns)
{
	uint64_t until_ns = t->peers[line->in_way].claim.until_ns;

	t->free_since_ns = 0;
	if (until_ns < now_ns + AGAIN_NS)
		until_ns = now_ns + AGAIN_NS;
	return wait_for(
		t, line->in_way, now_ns, turn_sooner(until_ns, now_ns + BEAT_NS), ret_poll_ns);
}

static uint64_t first_lease(const struct turn *t, uint64_t now_ns, uint64_t busy_until_ns)
{
	return turn_order_lease_ns(now_ns, busy_until_ns, t->grace_ns, 0, busy_until_ns);
}

/* A turn begins with work that ends then. */
static void begin(struct turn *t, uint64_t now_ns, uint64_t busy_until_ns)
{
	t->begun_ns = now_ns;
	t->first_until_ns = first_lease(t, now_ns, busy_until_ns);
	turn_set(&t->books->since_ns, now_ns);
	turn_set(&t->own->face.since_ns, now_ns);
}

/*
 * Whether one may have the turn by now that came after the last look at the folder. Where each look takes
 * long there is no better knowledge.
 */
static bool may_miss_new(const struct turn *t, uint64_t now_ns)
{
	return now_ns + TURN_CLAIM_NS >= t->folder_asked_ns + TURN_BORN_NS &&
	       t->late_looks < TURN_LATE_LOOKS;
}

/* Claims the free turn; a slice that does the same at the same time is met in the second poll. */
static int claim(struct turn *t, uint64_t *word, const struct turn_wish *wish,
	uint64_t busy_until_ns, uint64_t *ret_poll_ns)
{
	uint64_t now_ns = t->clock_ns();
	struct turn_line line;

	if (may_miss_new(t, now_ns))
		return wait_for(t, -1, now_ns, now_ns + SOON_NS, ret_poll_ns);
	/* Who does not believe the turn before this one does not take the claim for a part of it. */
	turn_set(&t->own->face.since_ns, now_ns);
	if (!turn_word_change(t, word, TURN_WORD(TURN_CLAIM, now_ns + TURN_CLAIM_NS)))
		return wait_for(t, -1, now_ns, now_ns + SOON_NS, ret_poll_ns);
	FAULT("turn: claimed");
	/* The turn begins after others can see the claim: who saw this slice without one before that began first. */
	now_ns = t->clock_ns();
	/* A claim does not last for a look at the folder, which its owner or who fills it may make long. */
	poll_known(t, blamed_for(t, wish, false, now_ns), true, now_ns);
	line = turn_order_line(t->peers, t->peer_count, wish, now_ns);
	if (line.in_way >= 0) {
		bool is_held = t->peers[line.in_way].claim.state == TURN_HOLD;

		turn_word_change(t, word, TURN_WORD(TURN_WANT, now_ns + TURN_WISH_NS));
		if (is_held)
			return wait_in_line(t, &line, now_ns, ret_poll_ns);
		return wait_for(t, line.in_way, now_ns,
			now_ns + (line.before == 0 ? AGAIN_NS : TURN_TAKE_NS), ret_poll_ns);
	}
	t->wanted_since_ns = 0;
	if (!turn_word_put_hold(t, word, first_lease(t, now_ns, busy_until_ns)))
		return wait_for(t, -1, now_ns, now_ns + SOON_NS, ret_poll_ns);
	t->is_substitute = line.first >= 0;
	if (line.first >= 0)
		turn_order_note_miss(&t->peers[line.first], t->alive_count, now_ns);
	begin(t, now_ns, busy_until_ns);
	turn_set(&t->own->face.turns, turn_get(&t->own->face.turns) + 1);
	t->free_since_ns = 0;
	return TURN_HELD;
}

/* The turn is not the slice's: gets into line, and takes it if it is free and ours. */
static int take(struct turn *t, uint64_t *word, unsigned rank, uint64_t busy_until_ns,
	uint64_t *ret_poll_ns)
{
	/* First: it may be the time of this moment, and the clock is not before it. */
	uint64_t born_ns = turn_record_born_ns(t);
	uint64_t now_ns = t->clock_ns(), take_ns;
	struct turn_wish wish = {.rank = rank, .patience_ns = t->patience_ns};
	struct turn_line line;
	bool is_new;

	/* Before the word, so that what changes it wakes us. acquire: pairs with the release in turn_word_wake() */
	t->own_news = atomic_load_explicit(&t->own->face.news, memory_order_acquire);
	*word = turn_load(&t->books->word);
	if ((*word & TURN_WORD_DRAINING) && turn_counts(*word, TURN_HOLD, now_ns))
		return wait_for(t, -1, now_ns,
			turn_sooner(TURN_WORD_UNTIL_NS(*word), now_ns + POLL_NS), ret_poll_ns);
	/*
	 * Others may not have found us yet, and would not see our claim: no wish, as who is first in line and
	 * does not take the turn is not believed for long.
	 */
	is_new = now_ns < born_ns + TURN_BORN_NS && now_ns >= born_ns;
	if (is_new && turn_count_peers(t, now_ns) > 0)
		return wait_for(t, -1, now_ns,
			turn_sooner(born_ns + TURN_BORN_NS, now_ns + BEAT_NS), ret_poll_ns);
	if (turn_counts(*word, TURN_CLAIM, now_ns) || turn_counts(*word, TURN_HOLD, now_ns) ||
		!say_wish(t, word, rank, now_ns))
		return wait_for(t, -1, now_ns, now_ns + SOON_NS, ret_poll_ns);
	wish.ticket_ns = turn_get(&t->books->since_ns);
	FAULT("turn: wanted");
	if (t->polled_ns + TURN_WISH_NS < now_ns)
		t->free_since_ns = 0;
	poll_peers(t, blamed_for(t, &wish, is_new, now_ns), now_ns);
	do
		line = turn_order_line(t->peers, t->peer_count, &wish, now_ns);
	while (line.in_way >= 0 && turn_list_forget_gone(t, (unsigned)line.in_way));
	if (line.in_way >= 0)
		return wait_in_line(t, &line, now_ns, ret_poll_ns);
	if (t->free_since_ns == 0)
		t->free_since_ns = now_ns;
	take_ns = t->free_since_ns + line.wait_ns;
	if (now_ns < take_ns)
		return wait_for(
			t, line.first, now_ns, turn_sooner(take_ns, now_ns + BEAT_NS), ret_poll_ns);
	return claim(t, word, &wish, busy_until_ns, ret_poll_ns);
}

/* The holder polls who waits. */
static void poll_waiters(struct turn *t, unsigned rank, uint64_t now_ns)
{
	uint64_t rest_ns = t->best_rank < rank ? BETTER_NS : POLL_NS;
	uint64_t since_ns = turn_get(&t->books->since_ns);
	bool is_waiting;

	/* A look before the turn began, which another process of the slice took, shows who had the one before it. */
	if (now_ns >= t->polled_ns + rest_ns || now_ns < t->polled_ns || t->polled_ns < since_ns)
		poll_peers(t, NULL, now_ns);
	else if (t->waiters_ns == t->polled_ns)
		return;
	t->waiters_ns = t->polled_ns;
	turn_order_is_wanted(t->peers, t->peer_count, rank, true, now_ns, &is_waiting);
	if (!is_waiting) {
		t->wanted_since_ns = 0;
		t->unwanted_ns = now_ns;
	} else if (t->wanted_since_ns == 0) {
		/* A kernel may lie between two looks, and others have waited all the while. */
		t->wanted_since_ns = t->unwanted_ns > since_ns ? t->unwanted_ns : since_ns;
	}
}

int turn_hold(struct turn *t, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns,
	uint64_t *ret_poll_ns)
{
	int saved = errno, r;
	uint64_t word;

	if (!t->own)
		return TURN_HELD;
	turn_word_touch(t, now_ns);
	/* relaxed: the change of the word that follows shows it */
	turn_set(&t->books->busy_until_ns[t->process],
		turn_sooner(busy_until_ns, now_ns + TURN_LONGEST_NS));
	word = turn_load(&t->books->word);
	/* A waiting slice limits the lease: polled first. */
	if (turn_counts(word, TURN_HOLD, now_ns))
		poll_waiters(t, rank, now_ns);
	if (LIKELY(turn_word_keep(t, &word, now_ns, busy_until_ns))) {
		t->held_until_ns = TURN_WORD_UNTIL_NS(word);
		return keep_errno(TURN_HELD, saved);
	}
	r = take(t, &word, rank, busy_until_ns, ret_poll_ns);
	if (r == TURN_HELD) {
		t->held_until_ns = TURN_WORD_UNTIL_NS(word);
		for (unsigned i = 0; i < t->peer_count; i++)
			t->peers[i].doubt.has_taken = false;
	} else {
		turn_set(&t->books->busy_until_ns[t->process], TURN_WANTS);
	}
	return keep_errno(r, saved);
}

void turn_note_served(struct turn *t, uint64_t served_ns, uint64_t permille)
{
	uint64_t others_ns = turn_order_others_ns(served_ns, permille);

	if (!served_ns)
		return;
	t->served_ns += served_ns;
	t->others_served_ns += others_ns;
	turn_order_note_served(t->peers, t->peer_count, others_ns);
}

/* An owner alone is clearly in the way for so long: with what it may have, a quarter longer than the slice had the device. */
static uint64_t enough_ns(const struct turn *t)
{
	uint64_t ns = t->served_ns + t->served_ns / 4;

	return ns > t->others_served_ns ? ns - t->others_served_ns : 0;
}

void turn_forgive(struct turn *t)
{
	t->served_ns = t->others_served_ns = 0;
	turn_order_forgive(t->peers, t->peer_count);
}

bool turn_blame(struct turn *t, enum turn_lack lack, uint64_t now_ns)
{
	if (turn_word_is_tampered(t, now_ns)) {
		turn_forgive(t);
		return true;
	}
	if (!turn_order_blame(t->peers, t->peer_count, enough_ns(t), lack, now_ns))
		return false;
	t->served_ns = t->others_served_ns = 0;
	for (unsigned i = 0; i < t->peer_count; i++) {
		if (!turn_order_is_ignored(&t->peers[i], now_ns))
			continue;
		turn_record_say_distrust(t, i);
		turn_owner_doubt(t, i);
	}
	return true;
}

void turn_prolong(struct turn *t, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns)
{
	int saved = errno;
	uint64_t word;

	if (!t->own)
		return;
	word = turn_load(&t->books->word);
	if (!turn_counts(word, TURN_HOLD, now_ns))
		return;
	turn_word_touch(t, now_ns);
	turn_set(&t->books->busy_until_ns[t->process],
		turn_sooner(busy_until_ns, now_ns + TURN_LONGEST_NS));
	poll_waiters(t, rank, now_ns);
	if (turn_word_keep(t, &word, now_ns, busy_until_ns))
		t->held_until_ns = TURN_WORD_UNTIL_NS(word);
	errno = saved;
}

/* For whom the turn is given back, for him the slice waits until it has the next one, whatever he says meanwhile. */
static bool is_taken(struct turn *t, bool is_over, uint64_t now_ns)
{
	int by = turn_order_taken_by(
		t->peers, t->peer_count, turn_get(&t->books->since_ns), is_over, now_ns);

	if (by >= 0)
		t->peers[by].doubt.has_taken = true;
	return by >= 0;
}

bool turn_is_wanted(
	struct turn *t, unsigned rank, uint64_t now_ns, uint64_t begin_ns, uint64_t end_ns)
{
	int saved = errno;
	bool is_waiting, is_over;
	uint64_t word;

	if (!t->own)
		return false;
	word = turn_load(&t->books->word);
	if (!turn_counts(word, TURN_HOLD, now_ns))
		return false;
	/* Another process of the slice has begun it. */
	if (word & TURN_WORD_DRAINING)
		return true;
	is_over = begin_ns >= turn_quantum_end_ns(t);
	poll_waiters(t, rank, now_ns);
	errno = saved;
	if (turn_word_is_tampered(t, now_ns) && turn_order_is_held(t->peers, t->peer_count, now_ns))
		return true;
	if (is_taken(t, is_over, now_ns) ||
		turn_order_is_wanted(t->peers, t->peer_count, rank, is_over, now_ns, &is_waiting)) {
		t->is_cut |= !is_over;
		return true;
	}
	if (!t->wanted_since_ns || end_ns <= t->wanted_since_ns + TURN_WANTED_NS ||
		end_ns <= t->first_until_ns)
		return false;
	/* It would run on when nobody believes any more that this turn is held. Who goes before all that wait has the next one. */
	if (turn_order_is_wanted(t->peers, t->peer_count, rank, true, now_ns, &is_waiting))
		return true;
	/* relaxed: as in turn_set() */
	atomic_store_explicit(&t->own->face.rank, rank, memory_order_relaxed);
	begin(t, now_ns, end_ns);
	t->unwanted_ns = now_ns;
	t->wanted_since_ns = 0;
	return false;
}

void turn_seize(struct turn *t, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns)
{
	int saved = errno;
	uint64_t word;

	if (!t->own)
		return;
	turn_word_touch(t, now_ns);
	turn_set(&t->books->busy_until_ns[t->process],
		turn_sooner(busy_until_ns, now_ns + TURN_LONGEST_NS));
	/* relaxed: the change of the word that follows shows it */
	atomic_store_explicit(&t->own->face.rank, rank, memory_order_relaxed);
	word = turn_load(&t->books->word);
	if (!turn_word_keep(t, &word, now_ns, busy_until_ns)) {
		turn_set(&t->own->face.since_ns, now_ns); /* as in claim() */
		if (turn_word_change(t, &word,
			    TURN_WORD(TURN_HOLD, first_lease(t, now_ns, busy_until_ns)))) {
			turn_set(&t->own->face.ticket_ns, now_ns);
			begin(t, t->clock_ns(), busy_until_ns); /* as in claim() */
			turn_set(&t->own->face.turns, turn_get(&t->own->face.turns) + 1);
		}
	}
	t->held_until_ns = TURN_WORD_UNTIL_NS(word);
	errno = saved;
}

void turn_say_next(struct turn *t, uint64_t next_ns)
{
	if (t->own)
		turn_set(&t->own->face.next_ns, next_ns);
}

uint64_t turn_next_ns(
	struct turn *t, unsigned rank, uint64_t lead_ns, uint64_t late_ns, uint64_t now_ns)
{
	return t->own ? turn_order_next_ns(
				t->peers, t->peer_count, &t->room, rank, lead_ns, late_ns, now_ns)
		      : 0;
}

unsigned turn_count_peers(struct turn *t, uint64_t now_ns)
{
	int saved = errno;

	if (!t->own)
		return 0;
	turn_word_touch(t, now_ns);
	if (now_ns >= t->polled_ns + PEERS_NS || now_ns < t->polled_ns)
		poll_peers(t, NULL, now_ns);
	errno = saved;
	return t->alive_count;
}

bool turn_is_contended(struct turn *t, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t looked_ns;

	if (!t->own || t->is_blind || t->others_ns >= since_ns)
		return true;
	looked_ns = t->polled_ns > t->peeked_ns ? t->polled_ns : t->peeked_ns;
	if (now_ns >= looked_ns + POLL_NS || now_ns < looked_ns) {
		int saved = errno;

		/* No poll: who waits for whom, and for how long, is counted from one to the next. */
		t->peeked_ns = now_ns;
		turn_list_look(t, now_ns);
		turn_record_read_peers(t, false, now_ns);
		note_others(t, now_ns);
		errno = saved;
	}
	return t->others_ns >= since_ns;
}

bool turn_is_overlapped(const struct turn *t, uint64_t now_ns)
{
	return t->own && turn_order_is_outlasted(t->peers, t->peer_count, now_ns);
}
