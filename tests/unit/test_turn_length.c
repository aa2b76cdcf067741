/* SPDX-License-Identifier: Apache-2.0 */
/* How long turns are, short and long, for any count of slices and any weight. */
#include "policy/turn_length.h"

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

#define MS UINT64_C(1000000)

static void short_turns_get_shorter_the_more_there_are(void **state)
{
	static const uint64_t lengths_ns[] = {6000000, 10700000, 7700000, 6700000};

	for (unsigned peers = 0; peers < ARRAY_SIZE(lengths_ns); peers++)
		assert_int_equal(turn_length_ns(peers, 100), lengths_ns[peers]);
	assert_int_equal(turn_length_ns(1, 200), 21400000);
	assert_int_equal(turn_length_ns(1, 50), 5350000);
	for (unsigned peers = 1; peers < 64; peers++)
		assert_true(turn_length_ns(peers, 100) > 4 * MS);
}

static void a_change_costs_a_small_part_of_a_long_turn(void **state)
{
	uint64_t two_ns = turn_length_long_ns(1, 100);

	assert_true(TURN_CHANGE_NS * 1000 <= two_ns * TURN_CHANGE_PERMILLE);
	for (unsigned peers = 1; peers < 64; peers++) {
		uint64_t ns = turn_length_long_ns(peers, 100);

		assert_true(ns >= turn_length_ns(peers, 100));
		assert_true(ns <= two_ns && ns <= TURN_LENGTH_MAX_NS);
		assert_true(ns * (peers + 1) <= TURN_ROUND_NS || ns == turn_length_ns(peers, 100));
	}
}

/* What all can have in proportion to their weights, or none has. */
static void long_turns_are_in_proportion_to_weights(void **state)
{
	static const uint32_t weights[] = {10, 50, 75, 100, 110};

	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		assert_in_range(turn_length_long_ns(1, weights[i]),
			turn_length_long_ns(1, 100) * weights[i] / 100,
			turn_length_long_ns(1, 100) * weights[i] / 100 + 1);
	assert_int_equal(turn_length_long_ns(1, 150), 0);
	assert_int_equal(turn_length_long_ns(1, 1000), 0);
}

static void who_says_nothing_or_the_future_is_not_steady(void **state)
{
	uint64_t now = 3600000 * MS;

	assert_true(turn_length_is_steady(now - TURN_STEADY_NS, now));
	assert_true(turn_length_is_steady(1, now));
	assert_false(turn_length_is_steady(now - TURN_STEADY_NS + 1, now));
	assert_false(turn_length_is_steady(0, now));
	assert_false(turn_length_is_steady(now + 1, now));
	assert_false(turn_length_is_steady(UINT64_MAX, now));
	assert_false(turn_length_is_steady(1, TURN_STEADY_NS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_turns_get_shorter_the_more_there_are),
		cmocka_unit_test(a_change_costs_a_small_part_of_a_long_turn),
		cmocka_unit_test(long_turns_are_in_proportion_to_weights),
		cmocka_unit_test(who_says_nothing_or_the_future_is_not_steady),
	};

	return cmocka_run_group_tests_name("turn_length", tests, NULL, NULL);
}
