/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice is to have back, in one word. */
#include "policy/owed.h"

#include "tests/unit/cmocka_ready.h"

#define MS	UINT64_C(1000000)
#define SECOND	UINT64_C(1000000000)
#define HALF	500 /* permille */
#define NOW	(UINT64_C(1234567) * SECOND)
#define SERVED	(UINT64_C(98765) * SECOND)
#define STEP_NS 32000 /* of both parts of the word */

static uint64_t at(uint64_t word, uint64_t served_ns, uint64_t now_ns)
{
	return owed_ns(word, SERVED + served_ns, HALF, NOW + now_ns);
}

static uint64_t add(uint64_t word, uint64_t served_ns, uint64_t now_ns, uint64_t more_ns)
{
	return owed_add(word, SERVED + served_ns, HALF, NOW + now_ns, more_ns);
}

static void a_word_of_nothing_owes_nothing(void **unused)
{
	assert_int_equal(at(0, 0, 0), 0);
}

static void waits_of_several_add_up_to_the_most(void **unused)
{
	uint64_t word = add(add(0, 0, 0, 30 * MS), 0, 0, 20 * MS);

	assert_in_range(at(word, 0, 0), 50 * MS - STEP_NS, 50 * MS + STEP_NS);
	for (unsigned i = 0; i < 100; i++)
		word = add(word, 0, 0, 30 * MS);
	assert_int_equal(at(word, 0, 0), OWED_MOST_NS);
}

static void what_several_wait_for_at_once_counts_once(void **unused)
{
	uint64_t word = owed_wait(0, SERVED, HALF, NOW, 40 * MS);

	assert_int_equal(at(word, 0, 0), 20 * MS);
	/* of 40 ms that ended 10 ms later */
	word = owed_wait(word, SERVED, HALF, NOW + 10 * MS, 40 * MS);
	assert_in_range(at(word, 0, 10 * MS), 25 * MS - STEP_NS, 25 * MS + STEP_NS);
	word = owed_wait(word, SERVED, HALF, NOW + 60 * MS, 40 * MS);
	assert_in_range(at(word, 0, 60 * MS), 45 * MS - 2 * STEP_NS, 45 * MS + 2 * STEP_NS);
}

static void what_the_device_does_for_the_slice_pays_it_once(void **unused)
{
	uint64_t word = add(0, 0, 0, 50 * MS);

	assert_in_range(at(word, 20 * MS, 0), 40 * MS - STEP_NS, 40 * MS + STEP_NS);
	word = add(word, 20 * MS, 0, 0);
	assert_in_range(at(word, 20 * MS, 0), 40 * MS - STEP_NS, 40 * MS + STEP_NS);
	assert_int_equal(at(word, 200 * MS, 0), 0);
	/* Books that were begun anew. */
	assert_int_equal(owed_ns(word, 0, HALF, NOW), 0);
}

static void it_is_forgotten_when_nobody_waits(void **unused)
{
	uint64_t word = add(0, 0, 0, 50 * MS);

	assert_int_equal(at(word, 0, 900 * MS), 50 * MS);
	assert_int_equal(at(word, 0, 1100 * MS), 0);
	assert_in_range(at(add(word, 0, 1100 * MS, 7 * MS), 0, 1100 * MS), 7 * MS - STEP_NS,
		7 * MS + STEP_NS);
	/* The clock of another boot, or namespace. */
	assert_int_equal(owed_ns(word, SERVED, HALF, NOW - 10 * SECOND), 0);
}

/* Of two processes one may have looked at the clock, and at what was served, before the other changed the word. */
static void what_was_seen_a_little_earlier_loses_nothing(void **unused)
{
	uint64_t word = add(0, 10 * MS, 10 * MS, 50 * MS);

	assert_int_equal(owed_ns(word, SERVED + 9 * MS, HALF, NOW + 9 * MS), 50 * MS);
	word = add(word, 9 * MS, 9 * MS, 10 * MS);
	assert_in_range(at(word, 10 * MS, 10 * MS), 60 * MS - STEP_NS, 60 * MS + STEP_NS);
	assert_in_range(at(word, 30 * MS, 10 * MS), 50 * MS - STEP_NS, 50 * MS + STEP_NS);
	/* The same time does not count twice. */
	word = owed_wait(word, SERVED + 10 * MS, HALF, NOW + 9 * MS, 40 * MS);
	assert_in_range(at(word, 10 * MS, 10 * MS), 60 * MS - STEP_NS, 60 * MS + STEP_NS);
}

static void a_pause_is_the_slices_where_nobody_else_waits(void **unused)
{
	uint64_t word = add(0, 0, 0, 50 * MS);

	assert_int_equal(at(owed_pause(word, 20 * MS, NOW + 21 * MS), 0, 21 * MS), 30 * MS);
	assert_int_equal(at(owed_pause(word, 80 * MS, NOW + 81 * MS), 0, 81 * MS), 0);
	assert_int_equal(at(owed_pause(word, 20 * MS, NOW + 10 * MS), 0, 10 * MS), 50 * MS);
	assert_int_equal(owed_pause(0, SECOND, NOW), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_of_nothing_owes_nothing),
		cmocka_unit_test(waits_of_several_add_up_to_the_most),
		cmocka_unit_test(what_several_wait_for_at_once_counts_once),
		cmocka_unit_test(what_the_device_does_for_the_slice_pays_it_once),
		cmocka_unit_test(what_was_seen_a_little_earlier_loses_nothing),
		cmocka_unit_test(a_pause_is_the_slices_where_nobody_else_waits),
		cmocka_unit_test(it_is_forgotten_when_nobody_waits),
	};

	return cmocka_run_group_tests_name("owed", tests, NULL, NULL);
}
