/* SPDX-License-Identifier: Apache-2.0 */
/* Who goes where a quota was lowered below what is in use. */
#include "policy/pressure.h"

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

struct look {
	bool is_shrunk;
	uint32_t limit, used;
	enum pressure_verdict verdict;
};

static void follow(const struct look *looks, size_t count)
{
	struct pressure p = {.is_in_grace = false};

	for (size_t i = 0; i < count; i++)
		assert_int_equal(
			pressure_look(&p, looks[i].is_shrunk, looks[i].limit, looks[i].used),
			looks[i].verdict);
}

static void over_a_quota_that_did_not_shrink_nobody_goes(void **state)
{
	static const struct look looks[] = {
		{false, 10, 11, PRESSURE_NONE},
		{false, 10, 11, PRESSURE_NONE},
		{false, 0, UINT32_MAX, PRESSURE_NONE},
	};

	follow(looks, ARRAY_SIZE(looks));
}

static void within_the_lowered_quota_nobody_goes(void **state)
{
	static const struct look looks[] = {
		{true, 10, 10, PRESSURE_NONE},
		{true, 10, 0, PRESSURE_NONE},
		{true, 0, 0, PRESSURE_NONE},
	};

	follow(looks, ARRAY_SIZE(looks));
}

static void the_second_look_over_it_decides(void **state)
{
	static const struct look looks[] = {
		{true, 10, 11, PRESSURE_GRACE},
		{true, 10, 11, PRESSURE_OVER},
		{true, 10, 12, PRESSURE_OVER},
	};

	follow(looks, ARRAY_SIZE(looks));
}

static void whoever_gives_back_gets_another_grace(void **state)
{
	static const struct look looks[] = {
		{true, 10, 15, PRESSURE_GRACE},
		{true, 10, 14, PRESSURE_GRACE},
		{true, 10, 12, PRESSURE_GRACE},
		{true, 10, 12, PRESSURE_OVER},
		{true, 10, 11, PRESSURE_GRACE},
		{true, 10, 10, PRESSURE_NONE},
	};

	follow(looks, ARRAY_SIZE(looks));
}

static void a_raised_quota_ends_it_and_the_next_shrink_begins_anew(void **state)
{
	static const struct look looks[] = {
		{true, 10, 15, PRESSURE_GRACE},
		{true, 20, 15, PRESSURE_NONE},
		{true, 10, 15, PRESSURE_GRACE},
		{true, 5, 15, PRESSURE_OVER},
	};

	follow(looks, ARRAY_SIZE(looks));
}

static void the_largest_is_found_and_the_first_of_equals(void **state)
{
	static const uint32_t one[] = {7}, none[] = {0, 0, 0}, some[] = {0, 3, 9, 2},
			      equal[] = {0, 5, 5, 5}, most[] = {1, UINT32_MAX};

	assert_int_equal(pressure_largest(NULL, 0), -1);
	assert_int_equal(pressure_largest(none, 3), -1);
	assert_int_equal(pressure_largest(one, 1), 0);
	assert_int_equal(pressure_largest(some, 4), 2);
	assert_int_equal(pressure_largest(equal, 4), 1);
	assert_int_equal(pressure_largest(most, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_a_quota_that_did_not_shrink_nobody_goes),
		cmocka_unit_test(within_the_lowered_quota_nobody_goes),
		cmocka_unit_test(the_second_look_over_it_decides),
		cmocka_unit_test(whoever_gives_back_gets_another_grace),
		cmocka_unit_test(a_raised_quota_ends_it_and_the_next_shrink_begins_anew),
		cmocka_unit_test(the_largest_is_found_and_the_first_of_equals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
