/* SPDX-License-Identifier: Apache-2.0 */
/* A process forks at each step of the tenant library, as another of its threads may (test_steps.c). */
#include "tests/tenant/places.h"

static bool fork_there(struct course *c, const char *fault, struct tenant *other)
{
	struct tenant *victim = course_start(c, fault);

	tenant_tell(victim, TOUR);
	course_expect_tour(victim);
	assert_int_equal(tenant_end(victim), 0);
	if (!other)
		other = tenant_new(c->slice);
	course_expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
	return true;
}

static void a_child_forked_at_any_step_lives_and_disturbs_nobody(void **state)
{
	places_try_everywhere(*state, "fork", fork_there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_child_forked_at_any_step_lives_and_disturbs_nobody),
	};

	return cmocka_run_group_tests_name("steps_of_fork", tests, NULL, NULL);
}
