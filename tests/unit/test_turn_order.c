/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is, without a clock. Who is believed: test_turn_belief.c. */
#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/turn_peer.h"

static void what_a_record_says_counts_until_its_time(void **state)
{
	static const struct {
		enum turn_state says;
		uint64_t until_ns;
		enum turn_state is;
	} rows[] = {
		{TURN_FREE, NOW + MS, TURN_FREE},
		{TURN_WANT, NOW + 1, TURN_WANT},
		{TURN_WANT, NOW, TURN_FREE},
		{TURN_WANT, NOW + 11 * MS, TURN_FREE}, /* no honest wish lasts that long */
		{TURN_CLAIM, NOW + 1, TURN_CLAIM},
		{TURN_CLAIM, NOW, TURN_FREE},
		{TURN_CLAIM, NOW + 3 * MS, TURN_FREE}, /* nor such a claim */
		{TURN_HOLD, NOW + 44 * MS, TURN_HOLD},
		{TURN_HOLD, UINT64_MAX, TURN_HOLD}, /* believed, until it has overstayed */
		{TURN_HOLD, NOW, TURN_FREE},
		{TURN_HOLD, 0, TURN_FREE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_peer p = peer(rows[i].says, 0, NOW, rows[i].until_ns);

		assert_int_equal(turn_order_state(&p, NOW), rows[i].is);
	}
}

static void the_best_rank_goes_first_and_then_who_came_first(void **state)
{
	static const struct {
		uint32_t own_rank;
		uint64_t own_ticket_ns;
		struct {
			uint32_t rank;
			uint64_t ticket_ns;
			bool wins_ties;
		} others[2];
		int first;
		unsigned before;
	} rows[] = {
		{1, NOW - 10, {{1, NOW - 9, false}, {1, NOW - 8, false}}, -1, 0},
		{1, NOW - 10, {{1, NOW - 11, false}, {1, NOW - 8, false}}, 0, 1},
		{1, NOW - 10, {{1, NOW - 11, false}, {1, NOW - 12, false}}, 1, 2},
		{1, NOW - 10, {{2, NOW - 11, false}, {0, NOW - 1, false}}, 1, 1},
		{0, NOW - 10, {{1, NOW - 99, false}, {2, NOW - 99, false}}, -1, 0},
		{1, NOW - 10, {{1, NOW - 10, false}, {1, NOW - 10, true}}, 1, 1},
		/* after 200 ms ranks do not count */
		{2, NOW - 200 * MS, {{1, NOW - 1, false}, {0, NOW - 1, false}}, -1, 0},
		{0, NOW - 10, {{6, NOW - 200 * MS, false}, {1, NOW, false}}, 0, 1},
		/* and of who borrows after a second */
		{2, NOW - 10, {{3, NOW - 999 * MS, false}, {3, NOW - 1, false}}, -1, 0},
		{0, NOW - 10, {{7, NOW - 1000 * MS, false}, {1, NOW, false}}, 0, 1},
		/* a ticket of the future is one of now */
		{1, NOW - 10, {{1, UINT64_MAX, false}, {1, NOW - 8, false}}, -1, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_wish wish = {rows[i].own_rank, rows[i].own_ticket_ns, TURN_PATIENCE_NS};
		struct turn_peer peers[2];
		struct turn_line line;

		for (unsigned k = 0; k < 2; k++) {
			peers[k] = peer(TURN_WANT, rows[i].others[k].rank,
				rows[i].others[k].ticket_ns, NOW + MS);
			peers[k].wins_ties = rows[i].others[k].wins_ties;
		}
		line = turn_order_line(peers, 2, &wish, NOW);
		assert_int_equal(line.first, rows[i].first);
		assert_int_equal(line.before, rows[i].before);
		assert_int_equal(line.in_way, -1);
	}
}

/* It may do so for as long as it likes, and is in nobody's way. */
static void who_claims_and_takes_no_turn_is_believed_no_more_until_it_has_one(void **state)
{
	struct turn_peer p = peer(TURN_CLAIM, 0, NOW, NOW + MS / 2);
	uint64_t now_ns = NOW;

	/* the first look finds it, and time counts from there */
	for (; now_ns <= NOW + TURN_CLAIMS_NS + MS / 2; now_ns += MS / 2) {
		p.claim.until_ns = now_ns + MS;
		assert_int_equal(turn_order_state(&p, now_ns), TURN_CLAIM);
		turn_order_note(&p, NULL, MS / 2, now_ns);
	}
	assert_int_equal(turn_order_state(&p, now_ns - 1), TURN_FREE);
	p.claim.state = TURN_WANT;
	turn_order_note(&p, NULL, MS / 2, now_ns);
	p.claim.state = TURN_CLAIM;
	turn_order_note(&p, NULL, MS / 2, now_ns);
	assert_int_equal(turn_order_state(&p, now_ns - 1), TURN_FREE);
	p.claim.state = TURN_HOLD;
	turn_order_note(&p, NULL, MS / 2, now_ns - 1);
	p.claim.state = TURN_CLAIM;
	turn_order_note(&p, NULL, MS / 2, now_ns - 1);
	assert_int_equal(turn_order_state(&p, now_ns - 1), TURN_CLAIM);
}

static void who_claims_or_holds_is_in_the_way_as_long_as_it_is_believed(void **state)
{
	struct turn_wish wish = {0, NOW - 1, TURN_PATIENCE_NS};
	struct turn_peer peers[] = {
		peer(TURN_CLAIM, 9, NOW, NOW + 1), peer(TURN_HOLD, 9, NOW, NOW + 1)};

	assert_int_equal(turn_order_line(peers, 2, &wish, NOW).in_way, 1);
	assert_int_equal(turn_order_line(peers, 1, &wish, NOW).in_way, 0);
	peers[1].doubt.ignored_until_ns = NOW + 1;
	assert_int_equal(turn_order_line(peers, 2, &wish, NOW).in_way, 0);
	assert_int_equal(turn_order_line(peers, 2, &wish, NOW + 1).in_way, -1);
}

static void the_first_has_300_us_and_each_after_it_50_more(void **state)
{
	static const uint64_t waits_ns[] = {0, 300000, 350000, 400000};
	struct turn_wish wish = {1, NOW - 10, TURN_PATIENCE_NS};
	struct turn_peer peers[3];

	for (unsigned count = 0; count <= 3; count++) {
		for (unsigned k = 0; k < count; k++)
			peers[k] = peer(TURN_WANT, 1, NOW - 11, NOW + MS);
		assert_int_equal(
			turn_order_line(peers, count, &wish, NOW).wait_ns, waits_ns[count]);
	}
}

static void a_holder_gives_way_to_its_like_after_its_quantum_and_to_better_ones_before(void **state)
{
	static const struct {
		uint32_t own, theirs;
		bool is_over, is_wanted;
	} rows[] = {
		{1, 1, false, false},
		{1, 1, true, true},
		{1, 0, false, true},
		{1, 0, true, true},
		{1, 2, false, false},
		{1, 2, true, false},
	};
	bool is_waiting;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_peer p = peer(TURN_WANT, rows[i].theirs, NOW - 5, NOW + MS);

		assert_int_equal(
			turn_order_is_wanted(&p, 1, rows[i].own, rows[i].is_over, NOW, &is_waiting),
			rows[i].is_wanted);
		assert_true(is_waiting);
		/* Who is not believed is heard at the quantum's end, and not before. */
		p.doubt.ignored_until_ns = NOW + 1;
		assert_int_equal(
			turn_order_is_wanted(&p, 1, rows[i].own, rows[i].is_over, NOW, &is_waiting),
			rows[i].is_wanted && rows[i].is_over);
		p.claim.until_ns = NOW;
		assert_false(turn_order_is_wanted(&p, 1, rows[i].own, true, NOW, &is_waiting));
		assert_false(is_waiting);
	}
}

static void a_lease_is_bounded_and_shorter_when_somebody_waits(void **state)
{
	static const struct {
		uint64_t busy_ns, wanted_ns, lease_ns, first_ns;
	} rows[] = {
		{0, 0, NOW + 300000, 0},
		{NOW - MS, 0, NOW + 300000, 0},
		{NOW + MS, 0, NOW + MS + 300000, 0},
		{NOW + 290 * MS, 0, NOW + 244 * MS, 0},
		{UINT64_MAX, 0, NOW + 244 * MS, 0},
		{NOW + MS, NOW - 5 * MS, NOW + MS + 300000, 0},
		{NOW + 240 * MS, NOW - 5 * MS, NOW + 235 * MS, 0},
		{NOW + MS, NOW - 240 * MS, NOW, 0},
		{NOW + MS, NOW - 250 * MS, NOW - 10 * MS, 0},
		/* what the turn began with */
		{NOW + 290 * MS, 0, NOW + 290 * MS, NOW + 290 * MS},
		{NOW + 300 * MS, NOW - 5 * MS, NOW + 290 * MS, NOW + 290 * MS},
		{NOW + MS, NOW - 250 * MS, NOW + MS + 300000, NOW + 9 * MS},
		{UINT64_MAX, 0, NOW + 2500 * MS, UINT64_MAX},
		{NOW + 300 * MS, 0, NOW + 244 * MS, NOW - MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(turn_order_lease_ns(NOW, rows[i].busy_ns, 300000,
					 rows[i].wanted_ns, rows[i].first_ns),
			rows[i].lease_ns);
}

#define LEAD_NS 400000u
#define LATE_NS 200000u

static uint64_t next_at(struct turn_peer *p, uint64_t at_ns)
{
	struct turn_room room = {MS};

	p->claim.seen_ns = at_ns;
	return turn_order_next_ns(p, 1, &room, 2, LEAD_NS, LATE_NS, at_ns);
}

static void room_is_made_for_who_comes_as_it_said(void **state)
{
	struct turn_peer p = peer(TURN_FREE, 0, 0, 0);
	uint64_t next_ns = NOW + MS;

	for (int i = 0; i < 20; i++, next_ns += MS) {
		p.claim.next_ns = next_ns;
		assert_int_equal(next_at(&p, next_ns - LEAD_NS - 1), 0);
		assert_int_equal(next_at(&p, next_ns - LEAD_NS), next_ns);
		/* Its turn was over before the reader looked. */
		p.claim.since_ns = next_ns + LATE_NS;
		turn_order_note(&p, NULL, 2 * LATE_NS, next_ns + LATE_NS + 1);
	}
	assert_int_equal(p.doubt.way_ns, 20 * 2 * LATE_NS);
}

static void room_is_made_once_for_who_puts_off_when_it_comes(void **state)
{
	struct turn_peer p = peer(TURN_FREE, 0, 0, 0);
	uint64_t at_ns = NOW;

	for (; at_ns < NOW + 100 * MS; at_ns += 100000) {
		p.claim.next_ns = at_ns + LEAD_NS;
		turn_order_note(&p, NULL, 100000, at_ns);
		if (!next_at(&p, at_ns))
			break;
	}
	assert_in_range(at_ns - NOW, LEAD_NS + LATE_NS, LEAD_NS + LATE_NS + 100000);
	for (; at_ns < NOW + 100 * MS; at_ns += 100000) {
		p.claim.next_ns = at_ns + LEAD_NS;
		turn_order_note(&p, NULL, 100000, at_ns);
		assert_int_equal(next_at(&p, at_ns), 0);
	}
	p.claim.state = TURN_HOLD;
	p.claim.until_ns = at_ns + MS;
	turn_order_note(&p, NULL, 100000, at_ns);
	assert_int_equal(next_at(&p, at_ns), p.claim.next_ns);
}

/* Who was to blame is believed again, and both hold the turn: one of them gives way, whichever began first. */
static void of_two_holders_one_gives_way(void **state)
{
	static const struct {
		int64_t theirs_later_ns;
		bool wins_ties, gives_way;
	} rows[] = {
		{-1, false, true},
		{0, false, false},
		{0, true, true},
		{1, true, false},
		{TURN_PATIENCE_NS, true, false},
		{TURN_PATIENCE_NS + 1, false, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_peer p = peer(TURN_HOLD, 1, NOW, NOW + 1000 * MS);

		p.wins_ties = rows[i].wins_ties;
		p.claim.since_ns = NOW + (uint64_t)rows[i].theirs_later_ns;
		assert_int_equal(turn_order_taken_by(&p, 1, NOW, false, NOW + 500 * MS),
			rows[i].gives_way ? 0 : -1);
		p.doubt.ignored_until_ns = NOW + 1000 * MS;
		assert_int_equal(turn_order_taken_by(&p, 1, NOW, false, NOW + 500 * MS), -1);
	}
}

/* A record may say that its turn began whenever it likes. */
static void a_turn_is_no_older_than_when_its_slice_was_seen_without_one(void **state)
{
	struct turn_peer p = peer(TURN_FREE, 1, 0, 0);
	const struct turn_peer *peers = &p;

	turn_order_note(&p, NULL, MS, NOW);
	p.claim = peer(TURN_HOLD, 1, NOW, NOW + 1000 * MS).claim;
	p.wins_ties = true;
	for (uint64_t since_ns = NOW - MS; since_ns <= NOW; since_ns += MS) {
		p.claim.since_ns = since_ns;
		turn_order_note(&p, NULL, MS, NOW + MS);
		assert_int_equal(turn_order_taken_by(peers, 1, NOW, true, NOW + 2 * MS), -1);
	}
	/* Of a turn that began after it was seen so that is not known. */
	assert_int_equal(turn_order_taken_by(peers, 1, NOW + 1, true, NOW + 2 * MS), 0);
	/* And none is yet to begin. */
	p.claim.since_ns = NOW + TURN_PATIENCE_NS + 1;
	assert_int_equal(turn_order_taken_by(peers, 1, NOW, true, p.claim.since_ns - 1), -1);
	assert_int_equal(turn_order_taken_by(peers, 1, NOW, true, p.claim.since_ns), 0);
}

/* What is known of it comes from then on; but both would go on for ever. */
static void who_is_met_within_a_turn_has_the_next_one(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, NOW + 1000 * MS);

	p.claim.since_ns = NOW - MS;
	p.met_ns = NOW + 1;
	assert_int_equal(turn_order_taken_by(&p, 1, NOW, false, NOW + 2 * MS), -1);
	assert_int_equal(turn_order_taken_by(&p, 1, NOW, true, NOW + 2 * MS), 0);
	p.met_ns = NOW;
	assert_int_equal(turn_order_taken_by(&p, 1, NOW, false, NOW + 2 * MS), 0);
}

/* What is said to be held for longer than any turn can be halves nothing. */
static void a_turn_that_is_longer_than_any_is_no_excuse(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);

	p.claim.since_ns = NOW;
	p.doubt.is_outlasted = true;
	p.doubt.outlasted_ns = NOW;
	assert_true(turn_order_is_outlasted(&p, 1, NOW + TURN_LONGEST_NS - 1));
	assert_false(turn_order_is_outlasted(&p, 1, NOW + TURN_LONGEST_NS));
	/* Nor what is said to begin later. */
	p.claim.since_ns = p.doubt.outlasted_ns = NOW + 2 * MS;
	assert_false(turn_order_is_outlasted(&p, 1, NOW + MS));
	assert_true(turn_order_is_outlasted(&p, 1, NOW + 2 * MS));
}

/* Its owner is not believed for a second or more. What is still said to be held then is no kernel's. */
static void a_turn_for_which_its_owner_was_blamed_is_no_excuse(void **state)
{
	uint64_t after_ns = NOW + TURN_IGNORE_NS + 300 * MS;
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);

	p.owner = 1;
	p.claim.since_ns = p.doubt.outlasted_ns = NOW;
	p.doubt.is_outlasted = true;
	p.doubt.way_ns = 300 * MS;
	assert_int_equal(turn_order_blame(&p, 1, 0, TURN_LACKS_ANEW, NOW + 300 * MS), 1);
	assert_false(turn_order_is_outlasted(&p, 1, after_ns - 1));
	assert_false(turn_order_is_outlasted(&p, 1, after_ns));
	p.claim.since_ns = NOW - MS;
	assert_false(turn_order_is_outlasted(&p, 1, after_ns));
	/* The next one is, once it was waited for. */
	p.claim.since_ns = p.doubt.outlasted_ns = NOW + 800 * MS;
	assert_true(turn_order_is_outlasted(&p, 1, after_ns));
}

/* Nor does it count as blamed for all that is to come by saying that its turn begins then. */
static void a_begin_that_is_to_come_is_not_what_it_was_blamed_for(void **state)
{
	uint64_t after_ns = NOW + TURN_IGNORE_NS + 300 * MS;
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);

	p.owner = 1;
	p.claim.since_ns = UINT64_MAX;
	p.doubt.way_ns = 300 * MS;
	assert_int_equal(turn_order_blame(&p, 1, 0, TURN_LACKS_ANEW, NOW + 300 * MS), 1);
	p.claim.since_ns = p.doubt.outlasted_ns = NOW + 800 * MS;
	p.doubt.is_outlasted = true;
	assert_true(turn_order_is_outlasted(&p, 1, after_ns));
}

/* Also where the record said something else of its turn as it was blamed; and where it comes back under another name. */
static void what_was_outlasted_before_the_blame_is_no_excuse(void **state)
{
	uint64_t after_ns = NOW + TURN_IGNORE_NS + 300 * MS;
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX), next = p;

	p.owner = 1;
	p.claim.since_ns = NOW - 500 * MS;
	p.doubt.is_outlasted = true;
	p.doubt.outlasted_ns = NOW;
	p.doubt.way_ns = 300 * MS;
	assert_int_equal(turn_order_blame(&p, 1, 0, TURN_LACKS_ANEW, NOW + 300 * MS), 1);
	p.claim.since_ns = next.claim.since_ns = NOW;
	assert_false(turn_order_is_outlasted(&p, 1, after_ns));
	turn_order_inherit(&next.doubt, &p.doubt);
	assert_false(turn_order_is_outlasted(&next, 1, after_ns));
}

/* Who comes again and again, and each time as it said, has room in a twelfth of the reader's turns. */
static void room_is_made_in_a_part_of_the_readers_own_turns(void **state)
{
	struct turn_peer p = peer(TURN_FREE, 0, 0, 0);
	struct turn_room room = {0};
	uint64_t at_ns = NOW, made_ns = 0;

	for (; at_ns < NOW + 1000 * MS; at_ns += 100000) {
		bool is_made = p.doubt.promised_ns != 0;

		made_ns += is_made ? 100000 : 0;
		turn_order_note_room(&room, &p, 1, 2, !is_made, 100000);
		p.claim.seen_ns = at_ns;
		if (at_ns >= p.claim.next_ns)
			p.claim.since_ns = at_ns;
		turn_order_note(&p, NULL, 100000, at_ns);
		if (!p.doubt.promised_ns)
			p.claim.next_ns = at_ns + LEAD_NS;
		turn_order_next_ns(&p, 1, &room, 2, LEAD_NS, LATE_NS, at_ns);
	}
	assert_in_range(made_ns, 70 * MS, 80 * MS);
	/* While others have the device nothing is saved up for it. */
	room.left_ns = 0;
	p = peer(TURN_HOLD, 2, NOW, NOW);
	turn_order_note_room(&room, &p, 1, 2, false, MS);
	assert_int_equal(room.left_ns, 0);
	/* But for those that go first, and use it. */
	p.claim.rank = 1;
	turn_order_note_room(&room, &p, 1, 2, false, MS);
	assert_int_equal(room.left_ns, MS / 2);
}

static void a_sign_of_life_counts_for_a_second(void **state)
{
	struct turn_claim c = {.seen_ns = NOW};

	assert_true(turn_order_is_alive(&c, NOW));
	assert_true(turn_order_is_alive(&c, NOW + 999 * MS));
	assert_false(turn_order_is_alive(&c, NOW + 1000 * MS));
	c.seen_ns = UINT64_MAX;
	assert_false(turn_order_is_alive(&c, NOW));
	c.seen_ns = 0;
	assert_false(turn_order_is_alive(&c, 5000 * MS));
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_record_says_counts_until_its_time),
		cmocka_unit_test(the_best_rank_goes_first_and_then_who_came_first),
		cmocka_unit_test(who_claims_and_takes_no_turn_is_believed_no_more_until_it_has_one),
		cmocka_unit_test(who_claims_or_holds_is_in_the_way_as_long_as_it_is_believed),
		cmocka_unit_test(the_first_has_300_us_and_each_after_it_50_more),
		cmocka_unit_test(
			a_holder_gives_way_to_its_like_after_its_quantum_and_to_better_ones_before),
		cmocka_unit_test(a_lease_is_bounded_and_shorter_when_somebody_waits),
		cmocka_unit_test(room_is_made_for_who_comes_as_it_said),
		cmocka_unit_test(room_is_made_once_for_who_puts_off_when_it_comes),
		cmocka_unit_test(room_is_made_in_a_part_of_the_readers_own_turns),
		cmocka_unit_test(of_two_holders_one_gives_way),
		cmocka_unit_test(a_turn_is_no_older_than_when_its_slice_was_seen_without_one),
		cmocka_unit_test(who_is_met_within_a_turn_has_the_next_one),
		cmocka_unit_test(a_turn_that_is_longer_than_any_is_no_excuse),
		cmocka_unit_test(a_turn_for_which_its_owner_was_blamed_is_no_excuse),
		cmocka_unit_test(a_begin_that_is_to_come_is_not_what_it_was_blamed_for),
		cmocka_unit_test(what_was_outlasted_before_the_blame_is_no_excuse),
		cmocka_unit_test(a_sign_of_life_counts_for_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
