/* SPDX-License-Identifier: Apache-2.0 */
/* Failing programs become short. */
#include "tests/hunt/shrink.h"

#include <stdint.h>

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

#define STEPS 100u

/* Fails where all of these steps are there, in this order. */
struct fault {
	unsigned needed[4], needed_count;
	unsigned runs;
};

static bool fails(const unsigned *steps, unsigned count, void *argument)
{
	struct fault *f = argument;
	unsigned at = 0;

	f->runs++;
	for (unsigned i = 0; i < count; i++) {
		assert_true(i == 0 || steps[i] > steps[i - 1]);
		if (at < f->needed_count && steps[i] == f->needed[at])
			at++;
	}
	return at == f->needed_count;
}

static void expect_found(struct fault f)
{
	unsigned steps[STEPS];

	assert_int_equal(shrink(STEPS, fails, &f, UINT64_MAX, steps), f.needed_count);
	for (unsigned i = 0; i < f.needed_count; i++)
		assert_int_equal(steps[i], f.needed[i]);
	assert_true(f.runs < 8 * STEPS);
}

static void what_a_failure_needs_is_left_and_nothing_else(void **state)
{
	const struct fault faults[] = {
		{.needed = {0}, .needed_count = 1},
		{.needed = {STEPS - 1}, .needed_count = 1},
		{.needed = {0, STEPS - 1}, .needed_count = 2},
		{.needed = {17, 18, 49, 50}, .needed_count = 4},
		{.needed_count = 0},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(faults); i++)
		expect_found(faults[i]);
}

static void a_program_without_steps_stays_so(void **state)
{
	struct fault f = {.needed_count = 0};
	unsigned steps[1];

	assert_int_equal(shrink(0, fails, &f, UINT64_MAX, steps), 0);
}

static void after_the_deadline_the_best_so_far_is_good_enough(void **state)
{
	struct fault f = {.needed = {3}, .needed_count = 1};
	unsigned steps[STEPS];

	assert_int_equal(shrink(STEPS, fails, &f, 0, steps), STEPS);
	assert_int_equal(f.runs, 0);
	assert_int_equal(steps[STEPS - 1], STEPS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_failure_needs_is_left_and_nothing_else),
		cmocka_unit_test(a_program_without_steps_stays_so),
		cmocka_unit_test(after_the_deadline_the_best_so_far_is_good_enough),
	};

	return cmocka_run_group_tests_name("shrink", tests, NULL, NULL);
}
