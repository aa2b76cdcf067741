/* SPDX-License-Identifier: Apache-2.0 */
/* Who is believed, and who is blamed for a wait, without a clock. */
#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/turn_peer.h"

/* How long it is believed by a reader that looks every 2 ms; the longest that the test lasts otherwise. */
static uint64_t believed_ns(
	struct turn_peer *p, uint32_t rank, uint64_t period_ns, uint64_t pause_ns)
{
	struct turn_wish wish = {rank, NOW, TURN_PATIENCE_NS};

	for (uint64_t at = 2 * MS; at < 600 * MS; at += 2 * MS) {
		p->claim.until_ns =
			pause_ns && at % (period_ns + pause_ns) >= period_ns ? 0 : UINT64_MAX;
		turn_order_note(p, &wish, 2 * MS, NOW + at);
		if (p->claim.until_ns && turn_order_state(p, NOW + at) == TURN_FREE)
			return at;
	}
	return UINT64_MAX;
}

static void a_turn_in_the_way_for_250_ms_is_not_believed(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	struct turn_wish other = {1, NOW + 300 * MS, TURN_PATIENCE_NS};
	uint64_t took;

	p.claim.since_ns = NOW - MS;
	took = believed_ns(&p, 1, 0, 0);
	assert_in_range(took, 250 * MS, 256 * MS);
	assert_false(turn_order_is_ignored(&p, NOW + took));
	/* nor for a later wish, and nor does an older beginning help; its next turn is believed */
	turn_order_note(&p, &other, MS, NOW + 300 * MS);
	assert_int_equal(turn_order_state(&p, NOW + 300 * MS), TURN_FREE);
	p.claim.since_ns = 1;
	assert_int_equal(turn_order_state(&p, NOW + 300 * MS), TURN_FREE);
	p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	p.claim.since_ns = UINT64_MAX;
	assert_in_range(believed_ns(&p, 1, 0, 0), 250 * MS, 256 * MS);
	p.claim.since_ns = NOW + 299 * MS;
	p.doubt.outlasted_ns = NOW;
	assert_int_equal(turn_order_state(&p, NOW + 300 * MS), TURN_HOLD);
}

static void a_new_beginning_does_not_help_within_one_wish(void **state)
{
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	unsigned believed = 0;

	for (uint64_t at = 2 * MS; at <= 1000 * MS; at += 2 * MS) {
		p.claim.since_ns = NOW + at;
		turn_order_note(&p, &wish, 2 * MS, NOW + at);
		believed += turn_order_state(&p, NOW + at) == TURN_HOLD;
	}
	assert_in_range(believed, 125, 128);
}

static void who_has_had_more_waits_for_longer(void **state)
{
	static const struct {
		int64_t saved_ns;
		uint64_t behind_ns;
		uint32_t permille;
		uint64_t patience_ns;
	} rows[] = {
		{0, 0, 1000, 250 * MS},
		{0, 180 * MS, 1000, 250 * MS},
		{0, 180 * MS, 500, 360 * MS},
		{20 * MS, 180 * MS, 500, 360 * MS},
		{-150 * MS, 140 * MS, 500, 580 * MS},
		{-250 * MS, 40 * MS, 100, 2500 * MS},
		{-10000 * MS, 0, 1, 2500 * MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(turn_order_patience_ns(
					 rows[i].saved_ns, rows[i].behind_ns, rows[i].permille),
			rows[i].patience_ns);
}

static void letting_go_for_a_moment_does_not_help_who_is_no_better(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);

	assert_true(believed_ns(&p, 1, 20 * MS, 2 * MS) < 320 * MS);
	p = peer(TURN_HOLD, 0, NOW, UINT64_MAX);
	/* A better one may, for as long as ranks count. */
	assert_in_range(believed_ns(&p, 2, 20 * MS, 2 * MS), 440 * MS, 520 * MS);
}

static void a_reader_that_was_away_blames_nobody_for_it(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};

	turn_order_note(&p, &wish, 0, NOW);
	turn_order_note(&p, &wish, 10000 * MS, NOW + 10000 * MS);
	assert_int_equal(p.doubt.in_way_ns, 5 * MS);
}

static void nobody_was_in_the_way_of_a_new_wish(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};

	for (unsigned i = 0; i < 20; i++)
		turn_order_note(&p, &wish, 2 * MS, NOW + 2 * MS * i);
	assert_int_equal(p.doubt.in_way_ns, 38 * MS);
	wish.ticket_ns += 40 * MS;
	turn_order_note(&p, &wish, 2 * MS, NOW + 40 * MS);
	assert_int_equal(p.doubt.in_way_ns, 0);
}

static void each_time_it_is_to_blame_it_is_not_believed_for_longer(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	uint64_t at = NOW, expected = TURN_IGNORE_NS;

	p.owner = 1;
	for (int i = 0; i < 10; i++) {
		turn_order_note_wait(&p.doubt, MS);
		assert_int_equal(turn_order_blame(&p, 1, 0, TURN_LACKS_ANEW, at), 1);
		assert_int_equal(p.doubt.ignored_until_ns, at + expected);
		at += expected;
		expected = i == 0 ? TURN_IGNORE_AGAIN_NS : 2 * expected;
		if (expected > TURN_IGNORE_MOST_NS)
			expected = TURN_IGNORE_MOST_NS;
	}
	at += 64001 * MS;
	turn_order_note_wait(&p.doubt, MS);
	turn_order_blame(&p, 1, 0, TURN_LACKS_ANEW, at);
	assert_int_equal(p.doubt.ignored_until_ns, at + TURN_IGNORE_NS);
}

/* Whose process wakes up late on a busy machine is honest all the same. */
static void who_misses_its_turn_is_believed_and_not_always_waited_for(void **state)
{
	struct turn_peer p = peer(TURN_WANT, 1, NOW, 0);
	struct turn_wish wish = {1, NOW + 1, TURN_PATIENCE_NS};
	uint64_t at = NOW, waited_ns = 0;
	bool waiting;

	for (unsigned m = 0; m < TURN_MISSES; m++) {
		assert_false(turn_order_is_passed_over(&p, at));
		turn_order_note_miss(&p, 1, at);
	}
	p.claim.until_ns = at + MS;
	assert_int_equal(turn_order_line(&p, 1, &wish, at).first, -1);
	/* a better one does not end a turn before its time, either */
	p.claim.rank = 0;
	assert_false(turn_order_is_wanted(&p, 1, 1, false, at, &waiting));
	assert_true(waiting);
	p.claim.state = TURN_HOLD;
	assert_int_equal(turn_order_state(&p, at), TURN_HOLD);
	for (; at < NOW + 10000 * MS; at += MS) {
		if (turn_order_is_passed_over(&p, at))
			continue;
		turn_order_note_miss(&p, 1, at);
		waited_ns += TURN_TAKE_NS;
	}
	assert_in_range(waited_ns, 10000 * MS / 33, 10000 * MS / 31);
	assert_false(turn_order_is_passed_over(&p, at + TURN_MISS_NS));
}

/* Where one reader of seven passes it over for its part, all together do for no more than for one reader. */
static void a_miss_counts_for_all_who_wait(void **state)
{
	struct turn_peer p = peer(TURN_WANT, 1, NOW, NOW + MS);
	unsigned misses = 0;

	for (; !turn_order_is_passed_over(&p, NOW); misses++)
		turn_order_note_miss(&p, 7, NOW);
	assert_int_equal(misses, 2);
	assert_false(turn_order_is_passed_over(&p, NOW + 7 * TURN_MISS_NS));
}

/*
 * For how long the reader waited for each, whose records they are, and how long is enough of one alone: who is blamed, a bit for
 * each, and for how long.
 */
static void the_owner_who_was_waited_for_longest_is_blamed(void **state)
{
	static const struct {
		unsigned count, way_ms[4], enough_ms, blamed, for_ms;
		uint64_t owners[4];
	} rows[] = {
		{1, {250}, 125, 1, 1000, {1}},
		{1, {120}, 125, 1, 400, {1}},
		{1, {0}, 0, 0, 0, {1}},
		{4, {200, 30, 30, 30}, 10, 1, 1000, {1, 2, 3, 4}},
		{4, {90, 70, 70, 60}, 10, 1, 400, {1, 2, 3, 4}},
		{3, {120, 0, 10}, 100, 1, 1000, {1, 2, 3}},
		/* many records of one count as one */
		{4, {60, 60, 60, 70}, 10, 7, 1000, {1, 1, 1, 2}},
		{4, {60, 60, 0, 90}, 10, 7, 400, {2, 2, 2, 1}},
		{2, {60, 60}, 80, 3, 1000, {1, 1}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_peer peers[4];
		unsigned blamed = 0, count;
		uint64_t for_ns = 0;

		for (unsigned k = 0; k < rows[i].count; k++) {
			peers[k] = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
			peers[k].owner = rows[i].owners[k];
			peers[k].doubt.way_ns = rows[i].way_ms[k] * MS;
		}
		count = turn_order_blame(
			peers, rows[i].count, rows[i].enough_ms * MS, TURN_LACKS_ANEW, NOW);
		for (unsigned k = 0; k < rows[i].count; k++) {
			blamed |= turn_order_is_ignored(&peers[k], NOW) << k;
			if (turn_order_is_ignored(&peers[k], NOW))
				for_ns = peers[k].doubt.ignored_until_ns - NOW;
			assert_int_equal(peers[k].doubt.way_ns, 0);
		}
		assert_int_equal(blamed, rows[i].blamed);
		assert_int_equal(count, __builtin_popcount(blamed));
		assert_int_equal(for_ns, rows[i].for_ms * MS);
	}
}

/* It may have waited for the same owner as the reader did, and has that back. */
static void beside_one_that_was_to_blame_another_is_excused(void **state)
{
	struct turn_peer peers[2] = {
		peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_HOLD, 1, NOW, UINT64_MAX)};

	peers[0].owner = 1;
	peers[1].owner = 2;
	peers[0].doubt.way_ns = 100 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS_ANEW, NOW), 1);
	peers[0].doubt.way_ns = 10 * MS;
	peers[1].doubt.way_ns = 50 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS, NOW + MS), 0);
	assert_int_equal(peers[0].doubt.way_ns, 10 * MS);
	assert_int_equal(peers[1].doubt.way_ns, 0);
	/* Who was to blame before is again. */
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS, NOW + 2000 * MS), 1);
	assert_true(turn_order_is_ignored(&peers[0], NOW + 2000 * MS));
	assert_false(turn_order_is_ignored(&peers[1], NOW + 2000 * MS));
	/* And another one, where the reader lacks more since. */
	peers[1].doubt.way_ns = 50 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS_ANEW, NOW + 2001 * MS), 1);
	assert_true(turn_order_is_ignored(&peers[1], NOW + 2001 * MS));
}

/* It was not clear that the first one was to blame, and the reader still lacks what it does by him. */
static void who_was_blamed_is_not_excused_while_the_reader_lacks_by_him(void **state)
{
	uint64_t later_ns = NOW + TURN_SUSPECT_NS + MS;
	struct turn_peer peers[2] = {
		peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_HOLD, 1, NOW, UINT64_MAX)};

	peers[0].owner = 1;
	peers[1].owner = 2;
	peers[0].doubt.way_ns = 190 * MS;
	peers[1].doubt.way_ns = 350 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS_ANEW, NOW), 1);
	assert_int_equal(peers[1].doubt.ignored_until_ns, NOW + TURN_REPAY_NS);
	peers[0].doubt.way_ns = 85 * MS;
	peers[1].doubt.way_ns = 234 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS, later_ns), 0);
	assert_int_equal(peers[0].doubt.way_ns, 0);
	assert_int_equal(peers[1].doubt.way_ns, 234 * MS);
	peers[0].doubt.way_ns = 2 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS_ANEW, later_ns), 1);
	assert_int_equal(peers[1].doubt.ignored_until_ns, later_ns + TURN_IGNORE_NS);
	/* Once the reader has what it is to have he is like any other. */
	turn_order_forgive(peers, 2);
	assert_false(peers[1].doubt.is_blamed);
	peers[1].doubt.ignored_times = 0;
	peers[1].doubt.ignored_until_ns = 0;
	peers[1].doubt.way_ns = 90 * MS;
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS, later_ns), 0);
	assert_int_equal(peers[1].doubt.way_ns, 0);
}

/*
 * One takes the device for 300 ms and leaves; another one then takes turns with the reader, which has as much of each round, and
 * is to have 60 percent.
 */
static void who_takes_turns_with_the_reader_is_less_to_blame_than_who_took_the_device(void **state)
{
	struct turn_peer peers[2] = {
		peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_HOLD, 1, NOW, UINT64_MAX)};
	uint64_t others_ns = turn_order_others_ns(24 * MS, 600);

	peers[0].owner = 1;
	peers[1].owner = 2;
	assert_int_equal(others_ns, 16 * MS);
	assert_int_equal(turn_order_others_ns(24 * MS, 0), 0);
	for (unsigned i = 0; i < 150; i++)
		turn_order_note_wait(&peers[0].doubt, 2 * MS);
	for (unsigned round = 0; round < 15; round++) {
		for (unsigned i = 0; i < 12; i++)
			turn_order_note_wait(&peers[1].doubt, 2 * MS);
		turn_order_note_served(peers, 2, others_ns);
	}
	assert_in_range(peers[0].doubt.way_ns, 280 * MS, 300 * MS);
	assert_in_range(peers[1].doubt.way_ns, 100 * MS, 140 * MS);
	assert_int_equal(turn_order_blame(peers, 2, 0, TURN_LACKS_ANEW, NOW), 1);
	assert_int_equal(peers[0].doubt.ignored_until_ns, NOW + TURN_IGNORE_NS);
	/* What is left of a round pays for no earlier one. */
	turn_order_note_wait(&peers[0].doubt, 5 * MS);
	turn_order_note_served(peers, 2, MS);
	turn_order_note_served(peers, 2, 100 * MS);
	assert_in_range(peers[0].doubt.way_ns, 4 * MS, 4 * MS + MS / 100);
}

/* How often one was to blame before, how long it was waited for, and for how long it is blamed. */
static void who_was_to_blame_before_is_blamed_for_little(void **state)
{
	static const struct {
		unsigned times, way_ms, other_ms, enough_ms;
		enum turn_lack lack;
		unsigned for_ms;
	} rows[] = {
		{1, 50, 0, 10, TURN_LACKS_LITTLE, 4000},
		{2, 50, 10, 500, TURN_LACKS_LITTLE, 8000},
		/* not clearly */
		{1, 50, 40, 10, TURN_LACKS_LITTLE, 0},
		{1, 50, 0, 200, TURN_LACKS_LITTLE, 0},
		{1, 50, 0, 200, TURN_LACKS, 4000},
		{1, 50, 40, 10, TURN_LACKS_ANEW, 4000},
		/* never before */
		{0, 50, 0, 10, TURN_LACKS_LITTLE, 0},
		{0, 50, 0, 10, TURN_LACKS_ANEW, 1000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct turn_peer peers[2] = {
			peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_HOLD, 1, NOW, UINT64_MAX)};
		uint64_t for_ms = rows[i].for_ms;

		peers[0].owner = 1;
		peers[1].owner = 2;
		peers[0].doubt.ignored_times = rows[i].times;
		peers[0].doubt.way_ns = rows[i].way_ms * MS;
		peers[1].doubt.way_ns = rows[i].other_ms * MS;
		assert_int_equal(
			turn_order_blame(peers, 2, rows[i].enough_ms * MS, rows[i].lack, NOW),
			for_ms != 0);
		assert_int_equal(peers[0].doubt.ignored_until_ns, for_ms ? NOW + for_ms * MS : 0);
		assert_int_equal(peers[0].doubt.way_ns, for_ms ? 0 : rows[i].way_ms * MS);
	}
}

/* Who has back what it could not have takes no more than that. Of one owner all records together. */
static void no_more_than_a_turns_patience_is_excused(void **state)
{
	struct turn_peer peers[3] = {peer(TURN_HOLD, 1, NOW, UINT64_MAX),
		peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_HOLD, 1, NOW, UINT64_MAX)};

	for (unsigned i = 0; i < 3; i++)
		peers[i].owner = 1 + i / 2;
	peers[0].doubt.way_ns = 150 * MS;
	assert_int_equal(turn_order_blame(peers, 3, 0, TURN_LACKS, NOW), 0);
	peers[1].doubt.way_ns = 150 * MS;
	assert_int_equal(turn_order_blame(peers, 3, 0, TURN_LACKS, NOW), 0);
	assert_int_equal(peers[0].doubt.way_ns, 0);
	assert_int_equal(peers[1].doubt.way_ns, 50 * MS);
	peers[2].doubt.way_ns = 20 * MS;
	assert_int_equal(turn_order_blame(peers, 3, 0, TURN_LACKS_ANEW, NOW), 2);
	assert_int_equal(peers[1].doubt.ignored_until_ns, NOW + TURN_IGNORE_NS);
	assert_int_equal(peers[1].doubt.excused_ns, 0);
}

static void who_is_waited_for_longest_twice_is_clearly_to_blame(void **state)
{
	static const uint64_t after_ms[] = {1399, 1400};

	for (size_t i = 0; i < ARRAY_SIZE(after_ms); i++) {
		struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
		uint64_t at_ns = NOW + after_ms[i] * MS;

		p.owner = 1;
		p.doubt.way_ns = 100 * MS;
		assert_int_equal(turn_order_blame(&p, 1, 100 * MS, TURN_LACKS_ANEW, NOW), 1);
		assert_int_equal(p.doubt.ignored_until_ns, NOW + TURN_REPAY_NS);
		p.doubt.way_ns = 100 * MS;
		assert_int_equal(turn_order_blame(&p, 1, 100 * MS, TURN_LACKS_ANEW, at_ns), 1);
		assert_int_equal(
			p.doubt.ignored_until_ns, at_ns + (i ? TURN_REPAY_NS : TURN_IGNORE_NS));
	}
}

/* Whatever it says afterwards. */
static void for_whom_a_turn_was_given_back_is_waited_for_until_the_next(void **state)
{
	struct turn_peer p = peer(TURN_FREE, 1, NOW, 0);
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};

	p.doubt.has_taken = true;
	turn_order_note(&p, &wish, 2 * MS, NOW);
	turn_order_note(&p, &wish, 2 * MS, NOW + 2 * MS);
	assert_int_equal(p.doubt.way_ns, 4 * MS);
	p.doubt.has_taken = false;
	turn_order_note(&p, &wish, 2 * MS, NOW + 4 * MS);
	assert_int_equal(p.doubt.way_ns, 4 * MS);
}

/* Both hold the turn: the one does not believe the other. */
static void of_two_holders_who_was_to_blame_before_is_waited_for(void **state)
{
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};

	for (int i = 0; i < 2; i++) {
		struct turn_peer peers[3] = {peer(TURN_HOLD, 1, NOW, UINT64_MAX),
			peer(TURN_HOLD, 1, NOW, UINT64_MAX), peer(TURN_CLAIM, 1, NOW, NOW + MS)};

		peers[i].doubt.ignored_times = 1;
		assert_int_equal(turn_order_line(peers, 3, &wish, NOW).in_way, i);
	}
}

/* Also by one that is never seen in the way twice in a row. */
static void who_was_waited_for_was_in_the_way_until_the_next_look(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, NOW, UINT64_MAX);
	struct turn_wish wish = {1, NOW, TURN_PATIENCE_NS};

	turn_order_note(&p, &wish, 2 * MS, NOW);
	p.doubt.is_awaited = true;
	p.claim.until_ns = NOW;
	turn_order_note(&p, &wish, 2 * MS, NOW + 2 * MS);
	assert_int_equal(p.doubt.way_ns, 2 * MS);
	assert_int_equal(p.doubt.in_way_ns, 0);
	/* Of the next wish nobody was in the way. */
	wish.ticket_ns++;
	turn_order_note(&p, &wish, 2 * MS, NOW + 4 * MS);
	assert_int_equal(p.doubt.way_ns, 2 * MS);
}

static void what_is_known_of_one_record_counts_for_the_next(void **state)
{
	struct turn_doubt old = {.in_way_ns = 40 * MS,
		.wish_ns = NOW,
		.ticket_ns = NOW + 5,
		.ignored_until_ns = NOW + 9 * MS,
		.ignored_times = 3,
		.was_in_way = true};
	struct turn_doubt new = {.missed_until_ns = NOW + MS, .wish_ns = NOW - 1, .in_way_ns = MS};

	turn_order_inherit(&new, &old);
	assert_int_equal(new.in_way_ns, 40 * MS);
	assert_int_equal(new.wish_ns, NOW);
	assert_int_equal(new.ignored_until_ns, NOW + 9 * MS);
	assert_int_equal(new.ignored_times, 3);
	assert_int_equal(new.missed_until_ns, NOW + MS);
	assert_false(new.was_in_way);
	old = (struct turn_doubt){.wish_ns = NOW - 1, .in_way_ns = 90 * MS};
	turn_order_inherit(&new, &old);
	assert_int_equal(new.in_way_ns, 40 * MS);
	assert_int_equal(new.ignored_times, 3);
}

static void no_ticket_is_believed_from_before_it_was_seen_not_waiting(void **state)
{
	struct turn_peer p = peer(TURN_HOLD, 1, 0, NOW + 1);
	struct turn_wish wish = {1, NOW - 5 * MS, TURN_PATIENCE_NS};

	turn_order_note(&p, NULL, MS, NOW);
	p = (struct turn_peer){
		.claim = peer(TURN_WANT, 1, 0, NOW + 2 * MS).claim, .doubt = p.doubt};
	turn_order_note(&p, &wish, MS, NOW + 1);
	assert_int_equal(turn_order_line(&p, 1, &wish, NOW + 1).before, 0);
	p.doubt.ticket_ns = 0;
	assert_int_equal(turn_order_line(&p, 1, &wish, NOW + 1).before, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_in_the_way_for_250_ms_is_not_believed),
		cmocka_unit_test(letting_go_for_a_moment_does_not_help_who_is_no_better),
		cmocka_unit_test(a_reader_that_was_away_blames_nobody_for_it),
		cmocka_unit_test(nobody_was_in_the_way_of_a_new_wish),
		cmocka_unit_test(a_new_beginning_does_not_help_within_one_wish),
		cmocka_unit_test(who_has_had_more_waits_for_longer),
		cmocka_unit_test(each_time_it_is_to_blame_it_is_not_believed_for_longer),
		cmocka_unit_test(who_misses_its_turn_is_believed_and_not_always_waited_for),
		cmocka_unit_test(a_miss_counts_for_all_who_wait),
		cmocka_unit_test(the_owner_who_was_waited_for_longest_is_blamed),
		cmocka_unit_test(beside_one_that_was_to_blame_another_is_excused),
		cmocka_unit_test(who_was_blamed_is_not_excused_while_the_reader_lacks_by_him),
		cmocka_unit_test(
			who_takes_turns_with_the_reader_is_less_to_blame_than_who_took_the_device),
		cmocka_unit_test(who_was_to_blame_before_is_blamed_for_little),
		cmocka_unit_test(no_more_than_a_turns_patience_is_excused),
		cmocka_unit_test(who_is_waited_for_longest_twice_is_clearly_to_blame),
		cmocka_unit_test(for_whom_a_turn_was_given_back_is_waited_for_until_the_next),
		cmocka_unit_test(of_two_holders_who_was_to_blame_before_is_waited_for),
		cmocka_unit_test(who_was_waited_for_was_in_the_way_until_the_next_look),
		cmocka_unit_test(what_is_known_of_one_record_counts_for_the_next),
		cmocka_unit_test(no_ticket_is_believed_from_before_it_was_seen_not_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
