/* SPDX-License-Identifier: Apache-2.0 */
/* The order of turns, and which slices are believed. */
#include "policy/turn_order.h"

#include "base/bits.h"

#include <stddef.h>

/*
 * The most that one look adds to what a peer is blamed for. A waiting slice looks every 2 ms; if it was
 * itself stopped for long, that is nobody else's fault.
 */
#define BLAME_NS  UINT64_C(5000000)
#define FUTURE_NS UINT64_C(1000000000) /* a sign of life so far ahead is none */

bool turn_order_is_ignored(const struct turn_peer *peer, uint64_t now_ns)
{
	return now_ns < peer->doubt.ignored_until_ns;
}

/* The state that counts by the clock alone. A wish or claim beyond its measure is not one of ours. */
static enum turn_state stated(const struct turn_claim *claim, uint64_t now_ns)
{
	if (now_ns >= claim->until_ns)
		return TURN_FREE;
	if (claim->state == TURN_WANT && claim->until_ns - now_ns > 2 * TURN_WISH_NS)
		return TURN_FREE;
	if (claim->state == TURN_CLAIM && claim->until_ns - now_ns > 2 * TURN_CLAIM_NS)
		return TURN_FREE;
	return claim->state;
}

/* A turn is not believed any more, and this is that one, or began before it. */
static bool is_outlasted(const struct turn_peer *peer)
{
	return peer->doubt.is_outlasted && peer->claim.since_ns <= peer->doubt.outlasted_ns;
}

enum turn_state turn_order_state(const struct turn_peer *peer, uint64_t now_ns)
{
	enum turn_state state = stated(&peer->claim, now_ns);

	if (state < TURN_CLAIM)
		return state;
	if (state == TURN_CLAIM && peer->doubt.claimed_ns > TURN_CLAIMS_NS)
		return TURN_FREE;
	return turn_order_is_ignored(peer, now_ns) || is_outlasted(peer) ? TURN_FREE : state;
}

static uint64_t ticket_of(const struct turn_peer *peer)
{
	return peer->claim.ticket_ns > peer->doubt.ticket_ns ? peer->claim.ticket_ns
							     : peer->doubt.ticket_ns;
}

static uint32_t aged(uint32_t rank, uint64_t ticket_ns, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns > ticket_ns ? now_ns - ticket_ns : 0;

	return waited_ns >= (rank % TURN_RANKS ? TURN_BORROWS_NS : TURN_RANK_NS) ? 0 : rank;
}

void turn_order_note_wait(struct turn_doubt *doubt, uint64_t waited_ns)
{
	uint64_t ns = min_u64(waited_ns, BLAME_NS);

	doubt->way_ns += ns;
	doubt->round_ns += ns;
}

/* Of two looks in a row that show a claim, no turn lies between. */
static void note_claim(struct turn_doubt *doubt, enum turn_state state, uint64_t elapsed_ns)
{
	bool was_claiming = doubt->was_claiming;

	doubt->was_claiming = state == TURN_CLAIM;
	if (state == TURN_HOLD)
		doubt->claimed_ns = 0;
	else if (was_claiming && doubt->was_claiming)
		doubt->claimed_ns += min_u64(elapsed_ns, BLAME_NS);
}

/* Whether it came for whom the reader made room. It may put off when it comes as often as it likes. */
static void note_promise(struct turn_peer *peer, uint64_t elapsed_ns, uint64_t now_ns)
{
	struct turn_doubt *doubt = &peer->doubt;
	bool has_come = doubt->was_in_way || peer->claim.since_ns >= doubt->promised_since_ns;

	if (doubt->promised_ns)
		turn_order_note_wait(doubt, elapsed_ns);
	if (has_come || now_ns > doubt->promised_ns) {
		doubt->is_absent = !has_come && (doubt->is_absent || doubt->promised_ns);
		doubt->promised_ns = 0;
	}
}

void turn_order_note(
	struct turn_peer *peer, const struct turn_wish *wish, uint64_t elapsed_ns, uint64_t now_ns)
{
	struct turn_doubt *doubt = &peer->doubt;
	enum turn_state state = stated(&peer->claim, now_ns);
	bool was_in_way = doubt->was_in_way, is_awaited = doubt->is_awaited, is_new;

	peer->is_alive = turn_order_is_alive(&peer->claim, now_ns);
	doubt->was_in_way = state >= TURN_CLAIM;
	note_claim(doubt, state, elapsed_ns);
	if (!doubt->was_in_way) {
		doubt->is_outlasted = false;
		doubt->free_ns = now_ns;
	}
	if (state != TURN_WANT)
		doubt->ticket_ns = now_ns;
	note_promise(peer, elapsed_ns, now_ns);
	if (!wish)
		return;
	/* Nobody has been in the way of a new wish so far. */
	if (doubt->wish_ns != wish->ticket_ns) {
		doubt->wish_ns = wish->ticket_ns;
		doubt->in_way_ns = 0;
		was_in_way = is_awaited = false;
	}
	/* A better one may come to its turn several times while the reader waits; others may not. */
	is_new = !doubt->was_in_way || peer->claim.since_ns != doubt->turn_ns;
	if (is_new && peer->claim.rank < aged(wish->rank, wish->ticket_ns, now_ns))
		doubt->in_way_ns = 0;
	doubt->turn_ns = peer->claim.since_ns;
	/* Whoever lets go between two looks was waited for all the same. */
	if (is_awaited || doubt->has_taken)
		turn_order_note_wait(doubt, elapsed_ns);
	if (!doubt->was_in_way)
		return;
	if (was_in_way)
		doubt->in_way_ns += elapsed_ns < BLAME_NS ? elapsed_ns : BLAME_NS;
	if (doubt->in_way_ns <= wish->patience_ns)
		return;
	doubt->is_outlasted = true;
	doubt->outlasted_ns = peer->claim.since_ns;
}

bool turn_order_was_to_blame(const struct turn_peer *peer, uint64_t now_ns)
{
	return peer->doubt.ignored_times &&
	       now_ns < peer->doubt.ignored_until_ns + TURN_IGNORE_MOST_NS;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void turn_order_inherit(struct turn_doubt *doubt, const struct turn_doubt *from)
{
	if (from->wish_ns > doubt->wish_ns) {
		doubt->wish_ns = from->wish_ns;
		doubt->in_way_ns = from->in_way_ns;
	} else if (from->wish_ns == doubt->wish_ns) {
		doubt->in_way_ns = later(doubt->in_way_ns, from->in_way_ns);
	}
	doubt->ignored_until_ns = later(doubt->ignored_until_ns, from->ignored_until_ns);
	doubt->outlasted_ns = later(doubt->outlasted_ns, from->outlasted_ns);
	doubt->is_outlasted |= from->is_outlasted;
	doubt->blamed_turn_ns = later(doubt->blamed_turn_ns, from->blamed_turn_ns);
	doubt->is_slow |= from->is_slow;
	doubt->is_blamed |= from->is_blamed;
	doubt->way_ns += from->way_ns;
	doubt->round_ns += from->round_ns;
	doubt->excused_ns += from->excused_ns;
	doubt->claimed_ns = later(doubt->claimed_ns, from->claimed_ns);
	doubt->missed_until_ns = later(doubt->missed_until_ns, from->missed_until_ns);
	doubt->ticket_ns = later(doubt->ticket_ns, from->ticket_ns);
	doubt->free_ns = later(doubt->free_ns, from->free_ns);
	if (from->ignored_times > doubt->ignored_times)
		doubt->ignored_times = from->ignored_times;
}

void turn_order_note_miss(struct turn_peer *peer, unsigned alive, uint64_t now_ns)
{
	uint64_t *until_ns = &peer->doubt.missed_until_ns;

	*until_ns = later(*until_ns, now_ns) + (alive ? alive : 1) * TURN_MISS_NS;
}

bool turn_order_is_passed_over(const struct turn_peer *peer, uint64_t now_ns)
{
	return turn_order_is_ignored(peer, now_ns) ||
	       peer->doubt.missed_until_ns > now_ns + (TURN_MISSES - 1) * TURN_MISS_NS;
}

/*
 * Whether it is this one for whom the reader waits: who holds the turn, and of several who was to blame before, as the others hold theirs
 * because they do not believe it.
 */
static bool is_more_in_way(
	const struct turn_peer *peer, const struct turn_peer *than, uint64_t now_ns)
{
	bool is_held = turn_order_state(peer, now_ns) == TURN_HOLD;

	if (!than || turn_order_state(than, now_ns) != TURN_HOLD)
		return !than || is_held;
	return is_held &&
	       (turn_order_was_to_blame(peer, now_ns) || !turn_order_was_to_blame(than, now_ns));
}

struct turn_line turn_order_line(const struct turn_peer *peers, unsigned count,
	const struct turn_wish *wish, uint64_t now_ns)
{
	struct turn_line line = {.in_way = -1, .first = -1};
	uint32_t own = aged(wish->rank, wish->ticket_ns, now_ns), best = own;
	uint64_t best_ns = wish->ticket_ns;

	for (unsigned i = 0; i < count; i++) {
		const struct turn_peer *p = &peers[i];
		enum turn_state state = turn_order_state(p, now_ns);
		uint64_t ticket_ns = ticket_of(p);
		uint32_t rank = aged(p->claim.rank, ticket_ns, now_ns);

		if (state >= TURN_CLAIM &&
			is_more_in_way(p, line.in_way < 0 ? NULL : &peers[line.in_way], now_ns))
			line.in_way = (int)i;
		if (state != TURN_WANT || turn_order_is_passed_over(p, now_ns))
			continue;
		if (rank > own ||
			(rank == own && (ticket_ns > wish->ticket_ns ||
						(ticket_ns == wish->ticket_ns && !p->wins_ties))))
			continue;
		line.before++;
		if (line.first >= 0 && (rank > best || (rank == best && ticket_ns >= best_ns)))
			continue;
		line.first = (int)i;
		best = rank;
		best_ns = ticket_ns;
	}
	if (line.before)
		line.wait_ns = TURN_TAKE_NS + (line.before - 1) * TURN_NEXT_NS;
	return line;
}

bool turn_order_is_wanted(const struct turn_peer *peers, unsigned count, uint32_t rank,
	bool is_over, uint64_t now_ns, bool *ret_waiting)
{
	bool is_wanted = false, is_waiting = false;

	for (unsigned i = 0; i < count; i++) {
		const struct turn_peer *p = &peers[i];
		uint32_t theirs = aged(p->claim.rank, ticket_of(p), now_ns);

		enum turn_state state = turn_order_state(p, now_ns);

		if (state == TURN_FREE || (state != TURN_WANT && theirs >= rank))
			continue;
		is_waiting = true;
		/* A slice that is not waited for is no better than the holder. */
		if (theirs < rank && turn_order_is_passed_over(p, now_ns))
			theirs = rank;
		is_wanted |= theirs < rank || (theirs == rank && is_over);
	}
	*ret_waiting = is_waiting;
	return is_wanted;
}

bool turn_order_is_contended(const struct turn_peer *peers, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		if (turn_order_is_alive(&peers[i].claim, now_ns) &&
			stated(&peers[i].claim, now_ns) != TURN_FREE)
			return true;
	return false;
}

bool turn_order_is_held(const struct turn_peer *peers, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		if (turn_order_state(&peers[i], now_ns) == TURN_HOLD)
			return true;
	return false;
}

/* Whether its turn goes before the reader's, which began at since_ns. */
static bool goes_before(
	const struct turn_peer *peer, uint64_t since_ns, bool is_over, uint64_t now_ns)
{
	uint64_t theirs_ns = peer->claim.since_ns;

	if (theirs_ns > now_ns || (peer->met_ns > since_ns && !is_over))
		return false;
	if (theirs_ns > since_ns + TURN_PATIENCE_NS)
		return true;
	if (peer->doubt.free_ns >= since_ns)
		return false;
	return theirs_ns < since_ns || (theirs_ns == since_ns && peer->wins_ties);
}

int turn_order_taken_by(const struct turn_peer *peers, unsigned count, uint64_t since_ns,
	bool is_over, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		if (turn_order_state(&peers[i], now_ns) == TURN_HOLD &&
			goes_before(&peers[i], since_ns, is_over, now_ns))
			return (int)i;
	return -1;
}

/* Whether it was to blame in this turn already, or in a later one. */
static bool was_blamed_for(const struct turn_peer *peer)
{
	return peer->claim.since_ns <= peer->doubt.blamed_turn_ns;
}

bool turn_order_is_outlasted(const struct turn_peer *peers, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		if (is_outlasted(&peers[i]) && !was_blamed_for(&peers[i]) &&
			!turn_order_is_ignored(&peers[i], now_ns) &&
			peers[i].claim.since_ns <= now_ns &&
			now_ns < peers[i].claim.since_ns + TURN_LONGEST_NS &&
			stated(&peers[i].claim, now_ns) == TURN_HOLD)
			return true;
	return false;
}

uint64_t turn_order_lease_ns(uint64_t now_ns, uint64_t busy_until_ns, uint64_t grace_ns,
	uint64_t wanted_since_ns, uint64_t first_until_ns)
{
	uint64_t most_ns = now_ns + TURN_LEASE_NS;
	uint64_t end_ns = later(now_ns, busy_until_ns);

	if (wanted_since_ns && most_ns > wanted_since_ns + TURN_WANTED_NS)
		most_ns = wanted_since_ns + TURN_WANTED_NS;
	if (most_ns < first_until_ns)
		most_ns = first_until_ns < now_ns + TURN_LONGEST_NS ? first_until_ns
								    : now_ns + TURN_LONGEST_NS;
	return end_ns < most_ns && grace_ns < most_ns - end_ns ? end_ns + grace_ns : most_ns;
}

uint64_t turn_order_patience_ns(int64_t saved_ns, uint64_t behind_ns, uint32_t permille)
{
	uint64_t ns = (behind_ns + (saved_ns < 0 ? (uint64_t)-saved_ns : 0)) * 1000 / permille;

	if (ns > TURN_LONGEST_NS)
		return TURN_LONGEST_NS;
	return later(ns, TURN_PATIENCE_NS);
}

bool turn_order_is_alive(const struct turn_claim *claim, uint64_t now_ns)
{
	/* Who waits for long work gives no sign of life. */
	if (claim->state == TURN_HOLD && now_ns < claim->until_ns &&
		claim->until_ns - now_ns <= TURN_LONGEST_NS)
		return true;
	if (claim->seen_ns > now_ns)
		return claim->seen_ns - now_ns < FUTURE_NS;
	return now_ns - claim->seen_ns < TURN_ALIVE_NS;
}

unsigned turn_order_count_alive(
	const struct turn_peer *peers, unsigned count, uint32_t *ret_best_rank)
{
	unsigned alive = 0;

	*ret_best_rank = UINT32_MAX;
	for (unsigned i = 0; i < count; i++) {
		if (!peers[i].is_alive)
			continue;
		alive++;
		if (peers[i].claim.rank < *ret_best_rank)
			*ret_best_rank = peers[i].claim.rank;
	}
	return alive;
}

void turn_order_note_room(struct turn_room *room, const struct turn_peer *peers, unsigned count,
	uint32_t rank, bool is_held, uint64_t elapsed_ns)
{
	int64_t ns = (int64_t)(elapsed_ns < BLAME_NS ? elapsed_ns : BLAME_NS);
	bool is_made = false, is_used = false;

	for (unsigned i = 0; i < count; i++) {
		is_made |= peers[i].doubt.promised_ns != 0;
		is_used |= peers[i].claim.state == TURN_HOLD &&
			   peers[i].claim.rank / TURN_RANKS < rank / TURN_RANKS;
	}
	if (is_made)
		room->left_ns -= ns;
	else if (is_used)
		room->left_ns += ns / TURN_ROOM_USED;
	else if (is_held)
		room->left_ns += ns / TURN_ROOM_PART;
	if (room->left_ns > TURN_ROOM_NS)
		room->left_ns = TURN_ROOM_NS;
}

uint64_t turn_order_next_ns(struct turn_peer *peers, unsigned count, const struct turn_room *room,
	uint32_t rank, uint64_t lead_ns, uint64_t late_ns, uint64_t now_ns)
{
	struct turn_peer *soonest = NULL;

	for (unsigned i = 0; i < count; i++) {
		const struct turn_claim *c = &peers[i].claim;

		if (c->rank >= rank || !turn_order_is_alive(c, now_ns) ||
			turn_order_is_ignored(&peers[i], now_ns) || peers[i].doubt.is_absent ||
			c->next_ns > now_ns + lead_ns || c->next_ns + late_ns < now_ns ||
			(room->left_ns <= 0 && !peers[i].doubt.promised_ns))
			continue;
		if (!soonest || c->next_ns < soonest->claim.next_ns)
			soonest = &peers[i];
	}
	if (!soonest)
		return 0;
	if (!soonest->doubt.promised_ns) {
		soonest->doubt.promised_ns = soonest->claim.next_ns + late_ns;
		soonest->doubt.promised_since_ns = now_ns;
	}
	return soonest->claim.next_ns;
}
