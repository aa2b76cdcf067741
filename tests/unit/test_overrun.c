/* SPDX-License-Identifier: Apache-2.0 */
/* Work that runs on when its turn is over: what counts, and for how long a slice has no turn then. */
#include "policy/overrun.h"

#include "tests/unit/cmocka_ready.h"

#define US    UINT64_C(1000)
#define MS    UINT64_C(1000000)
#define S     UINT64_C(1000000000)
#define NOW   (5 * S)
#define SAVED (100 * MS)
#define OWED  (250 * MS)
#define EXACT (100 * US) /* moments are of a us, and 20 permille of one grow in it */

static void work_runs_on_from_when_it_should_have_ended_or_the_turn_was_held_until(void **state)
{
	assert_int_equal(overrun_ns(NOW, NOW + 20 * MS, 2 * MS, 0), 18 * MS);
	assert_int_equal(overrun_ns(NOW, NOW + 20 * MS, 2 * MS, NOW + 15 * MS), 5 * MS);
	/* a turn of before says nothing of it */
	assert_int_equal(overrun_ns(NOW, NOW + 20 * MS, 2 * MS, NOW - 15 * MS), 18 * MS);
}

static void work_that_ends_in_time_or_is_seen_a_little_late_does_not(void **state)
{
	assert_int_equal(overrun_ns(NOW, NOW + 20 * MS, 2 * MS, NOW + 20 * MS), 0);
	assert_int_equal(overrun_ns(NOW, NOW + 400 * MS, 400 * MS, NOW + 244 * MS), 0);
	assert_int_equal(overrun_ns(NOW, NOW + 2 * MS + 500 * US, 2 * MS, 0), 0);
	assert_int_equal(overrun_ns(NOW, NOW + 2 * MS + 500 * US + 1, 2 * MS, 0), 500 * US + 1);
}

static void the_first_tenth_of_a_second_is_free(void **state)
{
	uint64_t word = overrun_note(0, SAVED, NOW, NOW);

	assert_int_equal(overrun_wait_ns(0, NOW), 0);
	assert_int_equal(overrun_wait_ns(word, NOW), 0);
	assert_in_range(overrun_wait_ns(overrun_note(word, MS, NOW, NOW), NOW), 50 * MS - EXACT,
		50 * MS + EXACT);
}

static void a_fiftieth_of_the_time_is_free(void **state)
{
	uint64_t word = overrun_note(0, SAVED, NOW, NOW), now_ns = NOW;

	for (int i = 0; i < 1000; i++) {
		now_ns += S / 10;
		word = overrun_note(word, 2 * MS - US, now_ns, now_ns);
		assert_int_equal(overrun_wait_ns(word, now_ns), 0);
	}
	for (int i = 0; i < 10; i++) {
		now_ns += S / 10;
		word = overrun_note(word, 40 * MS, now_ns, now_ns);
	}
	assert_true(overrun_wait_ns(word, now_ns) > 9 * S);
}

static void what_is_owed_is_paid_within_a_while(void **state)
{
	uint64_t word = overrun_note(0, 1000 * S, NOW, NOW);

	assert_in_range(overrun_wait_ns(word, NOW), 50 * OWED - EXACT, 50 * OWED + EXACT);
	for (int i = 0; i < 100; i++)
		word = overrun_note(word, S, NOW, NOW);
	assert_in_range(overrun_wait_ns(word, NOW), 50 * OWED - EXACT, 50 * OWED + EXACT);
	assert_int_equal(overrun_wait_ns(word, NOW + 51 * OWED), 0);
	/* no more than at first is saved up afterwards */
	word = overrun_note(word, SAVED + MS, NOW + 1000 * S, NOW + 1000 * S);
	assert_in_range(overrun_wait_ns(word, NOW + 1000 * S), 50 * MS - EXACT, 50 * MS + EXACT);
}

/* As much is paid since then as at any time, but what was owed before is not paid twice. */
static void what_ended_some_time_ago_is_paid_since(void **state)
{
	const uint64_t now = 100 * S;
	uint64_t word = overrun_note(0, S, now - 10 * S, now);

	assert_in_range(
		overrun_wait_ns(word, now), 50 * OWED - 10 * S - EXACT, 50 * OWED - 10 * S + EXACT);
	assert_int_equal(overrun_wait_ns(overrun_note(0, S, now - 13 * S, now), now), 0);
	assert_int_equal(overrun_wait_ns(overrun_note(0, S, 1, 4400 * S), 4400 * S), 0);
	/* What was owed since is not paid before. */
	word = overrun_note(overrun_note(0, OWED, now, now), 10 * MS, now - 10 * S, now);
	assert_in_range(overrun_wait_ns(word, now), 50 * (OWED - SAVED + 10 * MS) - EXACT,
		50 * (OWED - SAVED + 10 * MS) + EXACT);
	/* A moment to come is now. */
	assert_int_equal(overrun_note(0, S, now + S, now), overrun_note(0, S, now, now));
}

static void who_owes_goes_on_by_pieces_as_long_as_its_longest(void **state)
{
	uint64_t word = overrun_note_longest(0, 4 * MS, NOW);

	assert_int_equal(overrun_careful_ns(0, NOW), 0);
	assert_in_range(overrun_careful_ns(word, NOW), 4 * MS, 4 * MS + 2 * US);
	word = overrun_note_longest(word, 2 * MS, NOW + 59 * S);
	assert_in_range(overrun_careful_ns(word, NOW + 100 * S), 4 * MS, 4 * MS + 2 * US);
	assert_int_equal(overrun_careful_ns(word, NOW + 120 * S), 0);
	/* forgotten, it begins anew */
	word = overrun_note_longest(word, 2 * MS, NOW + 120 * S);
	assert_in_range(overrun_careful_ns(word, NOW + 120 * S), 2 * MS, 2 * MS + 2 * US);
	/* Never what is taken for unknown. */
	word = overrun_note_longest(0, MS - US, NOW);
	assert_int_not_equal(overrun_careful_ns(word, NOW), MS);
}

static void who_was_longer_than_that_has_no_turn(void **state)
{
	uint64_t word = overrun_note_longest(0, 51 * MS, NOW);

	assert_int_equal(overrun_careful_ns(word, NOW), 0);
	word = overrun_note_longest(word, 2 * MS, NOW + S);
	assert_int_equal(overrun_careful_ns(word, NOW + S), 0);
	assert_int_equal(overrun_careful_ns(overrun_note_longest(0, UINT64_MAX, NOW), NOW), 0);
	assert_int_equal(overrun_careful_ns(overrun_note_longest(0, 5000 * S, NOW), NOW), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			work_runs_on_from_when_it_should_have_ended_or_the_turn_was_held_until),
		cmocka_unit_test(work_that_ends_in_time_or_is_seen_a_little_late_does_not),
		cmocka_unit_test(who_owes_goes_on_by_pieces_as_long_as_its_longest),
		cmocka_unit_test(who_was_longer_than_that_has_no_turn),
		cmocka_unit_test(the_first_tenth_of_a_second_is_free),
		cmocka_unit_test(a_fiftieth_of_the_time_is_free),
		cmocka_unit_test(what_is_owed_is_paid_within_a_while),
		cmocka_unit_test(what_ended_some_time_ago_is_paid_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
