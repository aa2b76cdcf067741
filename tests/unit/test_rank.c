/* SPDX-License-Identifier: Apache-2.0 */
/* Names, policies and weights as users write them. */
#include "tests/unit/cmocka_ready.h"
#include "policy/names.h"
#include "policy/rank.h"

static void names_are_found_in_lists(void **state)
{
	assert_true(names_have(" a , b", "b"));
	assert_false(names_have(" a , b", "B"));
	assert_false(names_have(",", ""));
	assert_false(names_have("abc", "ab"));
	assert_false(names_have("ab", "abc"));
	assert_true(names_have("abc,xab, ab\t,c", "ab"));
	assert_true(names_have("ab", "ab"));
	assert_false(names_have("abab, a b ,b a", "ab"));
	assert_false(names_have("a,b", "a,b"));
	assert_false(names_have("a, b", " b"));
	assert_false(names_have(NULL, "b"));
	assert_true(names_occur_in("a30,H100", "NVIDIA A30"));
	assert_false(names_occur_in(",", "NVIDIA A30"));
	assert_false(names_occur_in("A300", "NVIDIA A30"));
	assert_true(names_are_blank(NULL));
	assert_true(names_are_blank(" \t"));
	assert_false(names_are_blank(","));
}

static void check_policy(const char *name, bool is_numa_bound, size_t count, enum rank_key first)
{
	struct rank_policy policy = rank_policy_of(name, is_numa_bound);

	assert_int_equal(policy.key_count, count);
	assert_int_equal(policy.keys[0], first);
}

static void policies_have_their_keys(void **state)
{
	check_policy("spread", false, 2, RANK_SPREAD);
	check_policy("binpack", false, 2, RANK_BINPACK);
	check_policy("BINPACK", false, 2, RANK_SPREAD);
	check_policy("binpack", true, 2, RANK_NUMA_LOWER);
	check_policy("numa", false, 1, RANK_NUMA);
	check_policy("binpack,numa,binpack,spread", true, 3, RANK_NUMA);
	check_policy("mutex,topology-aware", false, 1, RANK_SPREAD);
	assert_true(rank_policy_of("mutex,topology-aware", false).is_mutex);
	assert_true(rank_policy_of("mutex,topology-aware", false).is_topology);
}

static void weights_are_each_said_once(void **state)
{
	static const char *const wrong[] = {"", "slot=1,core=1", "slot=1,core=1,memory=-1",
		"slot=0,core=0,memory=0", "slot=1,slot=1,core=1,memory=1",
		"slot=1,core=1,memory=", "slot=1,core=1,memory=4294967296",
		"slot=1,core=1,memory=1,", "slots=1,core=1,memory=1"};
	struct rank_weights weights;
	struct err err = ERR_NULL;

	assert_int_equal(rank_weights_parse(" memory = 5 ,slot=0, core=1", &weights, &err), 0);
	assert_int_equal(weights.memory, 5);
	assert_int_equal(weights.slot, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_not_equal(rank_weights_parse(wrong[i], &weights, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_in_lists),
		cmocka_unit_test(policies_have_their_keys),
		cmocka_unit_test(weights_are_each_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
