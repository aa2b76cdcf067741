/* SPDX-License-Identifier: Apache-2.0 */
/* Work of which nobody knows how long it takes: the slice's word. */
#include "policy/unknown.h"

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define NOW                         \
	(UINT64_C(86400000000000) * \
		4000) /* eleven years of a machine that was never started anew */

static void a_word_says_whose_piece_it_is_and_since_when(void **state)
{
	static const unsigned slots[] = {0, 1, 77, UNKNOWN_SLOTS - 1};

	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		uint64_t word = unknown_word(slots[i], NOW);

		assert_int_not_equal(word, 0);
		assert_int_equal(unknown_slot(word), slots[i]);
		assert_in_range(unknown_age_ns(word, NOW + 5 * MS), 5 * MS, 5 * MS + UNKNOWN_SLOTS);
		/* Another processor reads the clock a little earlier. */
		assert_int_equal(unknown_age_ns(word, NOW - MS), 0);
	}
}

static void a_piece_stands_in_the_way_for_a_second(void **state)
{
	uint64_t word = unknown_word(5, NOW);

	assert_true(unknown_is_in_way(word, NOW));
	assert_true(unknown_is_in_way(word, NOW - MS));
	assert_true(unknown_is_in_way(word, NOW + UNKNOWN_MOST_NS - UNKNOWN_SLOTS));
	assert_false(unknown_is_in_way(word, NOW + UNKNOWN_MOST_NS));
	assert_false(unknown_is_in_way(0, NOW));
	/* One of another clock, or of nonsense, does not. */
	assert_false(unknown_is_in_way(word, NOW - UNKNOWN_MOST_NS - MS));
	assert_false(unknown_is_in_way(UINT64_MAX, NOW));
	assert_false(unknown_is_in_way(1, NOW));
}

static void it_is_looked_at_soon_while_it_may_be_short(void **state)
{
	uint64_t word = unknown_word(5, NOW);

	assert_int_equal(unknown_look_ns(word, NOW), NOW + 50 * US);
	assert_in_range(unknown_look_ns(word, NOW + MS) - NOW, MS + 250 * US, MS + 251 * US);
	assert_int_equal(unknown_look_ns(word, NOW + 100 * MS), NOW + 102 * MS);
	assert_int_equal(unknown_look_ns(word, NOW - MS), NOW - MS + 50 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_says_whose_piece_it_is_and_since_when),
		cmocka_unit_test(a_piece_stands_in_the_way_for_a_second),
		cmocka_unit_test(it_is_looked_at_soon_while_it_may_be_short),
	};

	return cmocka_run_group_tests_name("unknown", tests, NULL, NULL);
}
