/* SPDX-License-Identifier: Apache-2.0 */
/* Who of the containers on a device may work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/feedback.h"

#define MOST 4

struct scene {
	struct hami_figures containers[MOST];
	struct feedback answers[MOST];
};

static struct scene scene;

/* A container on the devices that the text names, a letter each. */
static void put(size_t at, const char *devices, int32_t priority, int32_t recent)
{
	struct hami_figures *c = &scene.containers[at];

	memset(c, 0, sizeof(*c));
	c->device_count = (unsigned)strlen(devices);
	for (unsigned i = 0; i < c->device_count; i++)
		c->devices[i].uuid[0] = devices[i];
	c->priority = priority;
	c->recent_launches = recent;
}

static void decide(size_t count)
{
	const struct hami_figures *list[MOST];

	for (size_t i = 0; i < count; i++)
		list[i] = &scene.containers[i];
	assert_int_equal(feedback_decide(list, count, scene.answers), 0);
}

static void check(size_t at, int32_t recent, int32_t is_limited)
{
	assert_int_equal(scene.answers[at].recent_launches, recent);
	assert_int_equal(scene.answers[at].is_limited, is_limited);
}

static void one_alone_may_exceed_its_limit(void **state)
{
	put(0, "a", 1, 5);
	decide(1);
	check(0, 4, 0);
}

static void equals_keep_their_limits_while_both_work(void **state)
{
	put(0, "a", 1, 5);
	put(1, "a", 1, 5);
	put(2, "b", 1, 5);
	decide(3);
	check(0, 4, 1);
	check(1, 4, 1);
	check(2, 4, 0);
	/* the last launch that counts is counted down before */
	put(1, "a", 1, 1);
	decide(3);
	check(0, 4, 0);
	check(1, 0, 0);
}

static void who_is_less_important_waits(void **state)
{
	put(0, "a", 0, 5);
	put(1, "ab", 1, 5);
	put(2, "b", 1, 5);
	decide(3);
	check(0, 4, 0);
	check(1, -1, 1);
	check(2, 4, 1);
	/* and goes on when the other has nothing to do */
	put(0, "a", 0, 0);
	put(1, "ab", 1, -1);
	decide(3);
	check(0, 0, 0);
	check(1, 0, 0);
}

static void figures_that_cannot_be_are_nobodys(void **state)
{
	put(0, "a", -3, 5);
	put(1, "a", 1, 5);
	put(2, "", 0, INT32_MAX);
	decide(3);
	check(1, 4, 0);
	check(2, INT32_MAX - 1, 0);
	scene.containers[0].devices[0].uuid[0] = '\0';
	put(1, "a", 1, INT32_MIN);
	decide(2);
	check(1, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_alone_may_exceed_its_limit),
		cmocka_unit_test(equals_keep_their_limits_while_both_work),
		cmocka_unit_test(who_is_less_important_waits),
		cmocka_unit_test(figures_that_cannot_be_are_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
