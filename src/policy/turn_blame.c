/* SPDX-License-Identifier: Apache-2.0 */
/* Who is to blame for a reader's waits. */
#include "policy/turn_order.h"

#include "base/bits.h"

#define PARTS_SHIFT 10 /* of a round's waits */

static void ignore(struct turn_doubt *doubt, uint64_t now_ns)
{
	uint64_t ns = TURN_IGNORE_NS;

	if (now_ns < doubt->ignored_until_ns)
		return;
	if (now_ns - doubt->ignored_until_ns > TURN_IGNORE_MOST_NS)
		doubt->ignored_times = 0;
	if (doubt->ignored_times)
		ns = TURN_IGNORE_AGAIN_NS << (doubt->ignored_times - 1);
	doubt->ignored_until_ns = now_ns + ns;
	if (ns < TURN_IGNORE_MOST_NS)
		doubt->ignored_times++;
	doubt->in_way_ns = 0;
}

uint64_t turn_order_others_ns(uint64_t served_ns, uint64_t permille)
{
	return permille ? served_ns * (1000 - permille) / permille : 0;
}

void turn_order_note_served(struct turn_peer *peers, unsigned count, uint64_t others_ns)
{
	uint64_t sum_ns = 0, parts;

	for (unsigned i = 0; i < count; i++)
		sum_ns += peers[i].doubt.round_ns;
	parts = sum_ns ? (min_u64(others_ns, sum_ns) << PARTS_SHIFT) / sum_ns : 0;
	for (unsigned i = 0; i < count; i++) {
		struct turn_doubt *doubt = &peers[i].doubt;

		doubt->way_ns -= min_u64(doubt->way_ns, doubt->round_ns * parts >> PARTS_SHIFT);
		doubt->round_ns = 0;
	}
}

/* Who is not believed now is in nobody's way. */
static uint64_t owner_way_ns(
	const struct turn_peer *peers, unsigned count, uint64_t owner, uint64_t now_ns)
{
	uint64_t way_ns = 0;

	for (unsigned i = 0; i < count; i++)
		if (peers[i].owner == owner && !turn_order_is_ignored(&peers[i], now_ns))
			way_ns += peers[i].doubt.way_ns;
	return way_ns;
}

static bool is_first_of_owner(const struct turn_peer *peers, unsigned i)
{
	unsigned first = 0;

	while (peers[first].owner != peers[i].owner)
		first++;
	return first == i;
}

/* The owner for whom the reader waited longest, and whether that was for much longer than for others. */
static uint64_t worst_owner(const struct turn_peer *peers, unsigned count, uint64_t enough_ns,
	uint64_t now_ns, bool *ret_is_clear)
{
	uint64_t owner = 0, most_ns = 0, sum_ns = 0; /* 0: for none */
	unsigned owners = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t way_ns = is_first_of_owner(peers, i)
					  ? owner_way_ns(peers, count, peers[i].owner, now_ns)
					  : 0;

		owners += way_ns != 0;
		sum_ns += way_ns;
		if (way_ns <= most_ns)
			continue;
		most_ns = way_ns;
		owner = peers[i].owner;
	}
	*ret_is_clear =
		owners > 1 ? most_ns > 2 * (sum_ns - most_ns) / (owners - 1) : most_ns > enough_ns;
	return owner;
}

static bool owner_was_to_blame(
	const struct turn_peer *peers, unsigned count, uint64_t owner, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++)
		if (peers[i].owner == owner && turn_order_was_to_blame(&peers[i], now_ns))
			return true;
	return false;
}

static bool owner_is_blamed(const struct turn_peer *peers, unsigned count, uint64_t owner)
{
	for (unsigned i = 0; i < count; i++)
		if (peers[i].owner == owner && peers[i].doubt.is_blamed)
			return true;
	return false;
}

/* Of each owner so much waiting is no offence, since anybody was last to blame. */
static void excuse(struct turn_peer *peers, unsigned count, uint64_t owner)
{
	uint64_t left_ns = TURN_PATIENCE_NS;

	for (unsigned i = 0; i < count; i++)
		if (peers[i].owner == owner)
			left_ns -= min_u64(left_ns, peers[i].doubt.excused_ns);
	for (unsigned i = 0; i < count; i++) {
		struct turn_doubt *doubt = &peers[i].doubt;
		uint64_t ns = peers[i].owner == owner ? min_u64(left_ns, doubt->way_ns) : 0;

		doubt->way_ns -= ns;
		doubt->excused_ns += ns;
		left_ns -= ns;
	}
}

/* But of those whose doing it is that the reader lacks what it does. */
static void excuse_others(struct turn_peer *peers, unsigned count, uint64_t now_ns)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t owner = peers[i].owner;

		if (is_first_of_owner(peers, i) && !owner_is_blamed(peers, count, owner) &&
			!owner_was_to_blame(peers, count, owner, now_ns))
			excuse(peers, count, owner);
	}
}

static void begin_anew(struct turn_peer *peers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct turn_doubt *doubt = &peers[i].doubt;

		doubt->way_ns = doubt->round_ns = doubt->excused_ns = 0;
	}
}

unsigned turn_order_blame(struct turn_peer *peers, unsigned count, uint64_t enough_ns,
	enum turn_lack lack, uint64_t now_ns)
{
	bool is_clear;
	uint64_t owner = worst_owner(peers, count, enough_ns, now_ns, &is_clear);
	bool is_known = owner && owner_was_to_blame(peers, count, owner, now_ns);
	unsigned blamed = 0;

	if (lack == TURN_LACKS_LITTLE && !(is_known && is_clear))
		return 0;
	/*
	 * Blamed at once, an honest slice that has back what it waited for worked beside the
	 * reader, and each was charged for both.
	 */
	if (owner && lack != TURN_LACKS_ANEW && !is_known) {
		excuse_others(peers, count, now_ns);
		return 0;
	}
	begin_anew(peers, count);
	for (unsigned i = 0; owner && i < count; i++) {
		struct turn_doubt *doubt = &peers[i].doubt;

		if (peers[i].owner != owner)
			continue;
		if (is_clear || is_known || now_ns < doubt->suspect_until_ns)
			ignore(doubt, now_ns);
		else if (doubt->ignored_until_ns < now_ns + TURN_REPAY_NS)
			doubt->ignored_until_ns = now_ns + TURN_REPAY_NS;
		doubt->suspect_until_ns = now_ns + TURN_SUSPECT_NS;
		doubt->is_blamed = true;
		/* The record's own word: a turn that is yet to begin is not one for which it was blamed. */
		doubt->blamed_turn_ns =
			min_u64(max_u64(peers[i].claim.since_ns, doubt->outlasted_ns), now_ns);
		blamed++;
	}
	return blamed;
}

void turn_order_forgive(struct turn_peer *peers, unsigned count)
{
	begin_anew(peers, count);
	for (unsigned i = 0; i < count; i++)
		peers[i].doubt.is_blamed = false;
}
