/* SPDX-License-Identifier: Apache-2.0 */
/* How long a turn, a claim and a wish count of who dies, is late, lies or overstays. */
#include "region/turn.h"
#include "region/turn_record.h"
#include "tests/unit/turn_scene.h"

static void who_dies_holding_is_past_when_its_lease_is(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 10 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 100 * MS), 10 * MS, 11 * MS);
	/* And if it was only stopped, it does not believe in its turn any more. */
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_false(turn_is_wanted(&a, 1, now, now, now));
}

static void no_honest_lease_is_longer_than_244_ms_but_for_what_the_turn_began_with(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold_for(&a, 1, 1000 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 300 * MS), 243 * MS, 245 * MS);
	turn_release(&b, now);
	now += 100 * MS;
	assert_int_equal(hold_for(&a, 1, 300 * MS), TURN_HELD);
	turn_set_patience(&b, 400 * MS);
	assert_in_range(wait_turn(&b, 400 * MS), 299 * MS, 302 * MS);
	turn_release(&b, now);
	now += 100 * MS;
	/* Who waits has less patience than the work takes: that turn is not believed, and the next one is. */
	assert_int_equal(hold_for(&a, 1, 1000 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 500 * MS), 400 * MS, 405 * MS);
	turn_release(&b, now);
	now += 10 * MS;
	assert_true(wait_turn(&b, 100 * MS) <= MS);
	turn_release(&b, now);
	now += 1000 * MS;
	assert_int_equal(hold_for(&a, 1, 300 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 400 * MS), 299 * MS, 302 * MS);
	assert_false(turn_order_is_ignored(&b.peers[0], now));
}

/* What began with long work is over with it, also where another process of the slice has begun the next turn. */
static void long_work_of_an_earlier_turn_makes_no_later_one_long(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 2000 * MS), TURN_HELD);
	turn_release(&a, now);
	atomic_store(&a.books->since_ns, now + MS);
	atomic_store(&a.books->word, TURN_WORD(TURN_HOLD, now + 5 * MS));
	now += MS;
	turn_prolong(&a, 1, now, now + 1000 * MS);
	assert_in_range(
		TURN_WORD_UNTIL_NS(atomic_load(&a.books->word)), now + 240 * MS, now + 245 * MS);
}

/* What a launch under way gives then runs on beside others' work. */
static void a_turn_that_is_given_back_was_held_until_then(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 100 * MS), TURN_HELD);
	assert_in_range(a.held_until_ns, now + 99 * MS, now + 101 * MS);
	turn_shorten(&a, now, now + 50 * MS);
	assert_in_range(a.held_until_ns, now + 49 * MS, now + 51 * MS);
	turn_idle(&a, MS, now);
	assert_int_equal(a.held_until_ns, now + MS);
	turn_release(&a, now);
	assert_int_equal(a.held_until_ns, now);
}

/* The holder of it makes no call meanwhile, as a program does that waits for its work. */
static void long_work_is_waited_for_to_its_end(void **state)
{
	open_two(*state);
	turn_set_patience(&b, TURN_LONGEST_NS);
	assert_int_equal(hold_for(&a, 1, 2400 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 2500 * MS), 2399 * MS, 2402 * MS);
}

/* While more than a second of it is left, too, it is the slice's own turn: it goes on, is wanted, and is given back. */
static void long_work_is_of_a_turn_from_its_beginning_on(void **state)
{
	uint64_t look = 0;

	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 2400 * MS), TURN_HELD);
	now += MS;
	assert_int_equal(hold_for(&a, 1, 2399 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	now += MS;
	assert_true(turn_is_wanted(&a, 1, now, now + 100 * MS, now + 100 * MS));
	turn_release(&a, now);
	assert_int_equal(turn_hold(&b, 1, now, now + MS, &look), TURN_HELD);
}

/* Both would go on as long as they have work: neither sees anybody wait. */
static void whose_turn_was_outlasted_gives_it_back(void **state)
{
	for (unsigned rank = 0; rank < 3; rank++) {
		open_two(*state);
		assert_int_equal(hold_for(&a, rank, 300 * MS), TURN_HELD);
		assert_in_range(wait_turn(&b, 300 * MS), 250 * MS, 255 * MS);
		assert_int_equal(hold_for(&b, 1, 20 * MS), TURN_HELD);
		now += MS;
		assert_true(turn_is_wanted(&a, rank, now, now + 20 * MS, now + 25 * MS));
		assert_true(turn_is_overlapped(&b, now));
		assert_false(turn_is_overlapped(&a, now));
		assert_false(turn_is_wanted(&b, 1, now, now, now + MS));
		turn_release(&a, now);
		now += MS;
		assert_false(turn_is_wanted(&b, 1, now, now, now + MS));
		assert_false(turn_is_overlapped(&b, now));
		turn_close(&a);
		turn_close(&b);
		now += 10000 * MS;
	}
}

/* Who could not have its share has a longer turn, but for a better one. */
static void a_turn_is_longer_where_its_work_counts_as_begun_before(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 60 * MS), TURN_HELD);
	now += 50 * MS;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	now += MS;
	assert_false(turn_is_wanted(&a, 1, now, now - 51 * MS, now + MS));
	assert_true(turn_is_wanted(&a, 1, now, now, now + MS));
	assert_true(turn_is_wanted(&a, 2, now, now - 51 * MS, now + MS));
}

static void who_dies_claiming_or_waiting_is_past_soon(void **state)
{
	open_two(*state);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_CLAIM, now + TURN_CLAIM_NS));
	assert_in_range(wait_turn(&b, 100 * MS), MS, 2 * MS);
	turn_release(&b, now);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	now += 6 * MS;
	assert_int_equal(hold(&b), TURN_HELD);
	assert_false(turn_is_wanted(&b, 1, now, now, now));
}

static void who_comes_too_late_to_prolong_has_lost_the_turn(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	late_ns = 5 * MS;
	looks_until_late = 0; /* after the store of the longer lease */
	assert_int_equal(hold_for(&a, 1, 3 * MS), TURN_HELD);
	/* It began anew, with a claim. */
	assert_int_equal(atomic_load(&a.own->face.turns), 2);
	late_ns = 5 * MS;
	looks_until_late = 0;
	atomic_store(&b.own->face.word, TURN_WORD(TURN_HOLD, now + 50 * MS));
	assert_int_equal(hold_for(&a, 1, 9 * MS), TURN_E_WAIT);
	assert_int_equal(TURN_WORD_STATE(atomic_load(&a.own->face.word)), TURN_WANT);
}

static void who_comes_too_late_with_its_claim_does_not_hold(void **state)
{
	uint64_t look;

	open_two(*state);
	late_ns = 2 * MS;
	looks_until_late = 2; /* between the look at the others and the hold */
	assert_int_equal(turn_hold(&a, 1, now, now + MS, &look), TURN_E_WAIT);
	assert_int_equal(late_ns, 0);
	assert_int_equal(TURN_WORD_STATE(atomic_load(&a.own->face.word)), TURN_FREE);
	assert_int_equal(hold(&b), TURN_HELD);
}

/* Stands in b's way, which blames it. */
static void overstay(void)
{
	assert_in_range(wait_turn(&b, 300 * MS), 250 * MS, 255 * MS);
	turn_blame(&b, TURN_LACKS_ANEW, now);
	turn_release(&b, now);
}

static void who_is_to_blame_is_not_believed_for_a_while(void **state)
{
	struct turn_view views[4];
	unsigned count;

	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_HOLD, UINT64_MAX >> 4));
	overstay();
	now += 900 * MS;
	assert_true(wait_turn(&b, 100 * MS) <= MS);
	assert_int_equal(turn_read(folder_of(*state), UUID, now, views, 4, &count), 0);
	assert_int_equal(count, 2);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(views[i].distrusted, views[i].slice[0] == 'a');
	turn_release(&b, now);
	now += 200 * MS;
	/* Then it has another chance, and does not use it. */
	atomic_store(&a.own->face.seen_ns, now);
	atomic_store(&a.own->face.since_ns, now);
	overstay();
	now += 3900 * MS;
	assert_true(wait_turn(&b, 100 * MS) <= MS);
}

static void who_is_always_first_and_never_takes_its_turn_is_not_waited_for(void **state)
{
	uint64_t waited = 0;

	open_two(*state);
	for (int i = 0; i < 50; i++) {
		turn_release(&b, now);
		atomic_store(&a.own->face.ticket_ns, 0);
		atomic_store(&a.own->face.word, TURN_WORD(TURN_WANT, now + TURN_WISH_NS));
		waited += wait_turn(&b, 100 * MS);
	}
	assert_in_range(waited, 300 * US, TURN_MISSES * 310 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(who_dies_holding_is_past_when_its_lease_is),
		TURN_TEST(no_honest_lease_is_longer_than_244_ms_but_for_what_the_turn_began_with),
		TURN_TEST(long_work_of_an_earlier_turn_makes_no_later_one_long),
		TURN_TEST(a_turn_that_is_given_back_was_held_until_then),
		TURN_TEST(long_work_is_waited_for_to_its_end),
		TURN_TEST(long_work_is_of_a_turn_from_its_beginning_on),
		TURN_TEST(whose_turn_was_outlasted_gives_it_back),
		TURN_TEST(a_turn_is_longer_where_its_work_counts_as_begun_before),
		TURN_TEST(who_dies_claiming_or_waiting_is_past_soon),
		TURN_TEST(who_comes_too_late_to_prolong_has_lost_the_turn),
		TURN_TEST(who_comes_too_late_with_its_claim_does_not_hold),
		TURN_TEST(who_is_to_blame_is_not_believed_for_a_while),
		TURN_TEST(who_is_always_first_and_never_takes_its_turn_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
