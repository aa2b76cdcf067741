/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that nobody knows of before it is there, beside another thread's call that stays in the driver: what that call has
 * reserved, or gives back, is no cover for it.
 */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <unistd.h>

#define STAY_NS	 UINT64_C(1600000000) /* longer than anybody waits */
#define BRIEF_NS UINT64_C(300000000)
#define PAUSE_US 100000

/* The call is in the driver when this returns, and stays there. */
static void stay(struct tenant *t, const char *command, const char *symbol, uint64_t stay_ns)
{
	struct inject_rule rule = {.tag = "*", .times = 1, .delay_ns = stay_ns};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	assert_true(inject_add_rule(t->slice->node->machine, &rule) >= 0);
	expect(t, OK, "aside %s", command);
	usleep(PAUSE_US);
}

static void expect_all_charged(struct slice *slice)
{
	assert_true(slice_truth(slice, 0) <= slice_books(slice, 0));
	assert_true(slice_truth(slice, 0) <= slice->quota[0]);
}

/* Loads a library with 1.25 GiB of data beside the call. */
static void load_beside(struct node *node, const char *quota, const char *prepare,
	const char *command, const char *symbol, uint64_t stay_ns, int expected)
{
	static const char *const loads[] = {"uselibrary l data", "launch l"};
	struct slice *slice = slice_new(node, "a", quota, NULL);

	node->is_loud = true;
	for (unsigned i = 0; i < 2; i++) {
		struct tenant *t = tenant_new(slice);

		slice->slack_bytes = 0;
		expect(t, OK, "%s", prepare);
		expect(t, OK, "library l fat data=1280m");
		stay(t, command, symbol, stay_ns);
		expect(t, expected, "%s", loads[i]);
		if (stay_ns == STAY_NS)
			expect_all_charged(slice);
		expect(t, OK, "joined");
		expect_all_charged(slice);
		slice_agreed(slice, 0);
		slice->slack_bytes = 1280 * MIB; /* as long as it was loaded */
		inject_clear_rules(node->machine);
		assert_int_equal(tenant_end(t), 0);
		assert_int_equal(slice_books(slice, 0), 0);
	}
}

static void what_does_not_fit_beside_a_reservation_is_refused(void **state)
{
	load_beside(*state, "2g", "sync", "alloc a 1g", "cuMemAlloc_v2", BRIEF_NS, OUT_OF_MEMORY);
	load_beside(*state, "2g", "sync", "alloc a 1g", "cuMemAlloc_v2", STAY_NS, OUT_OF_MEMORY);
	load_beside(*state, "2g", "sync", "create a 1g", "cuMemCreate", STAY_NS, OUT_OF_MEMORY);
}

static void what_does_not_fit_beside_a_free_is_refused(void **state)
{
	load_beside(*state, "2g", "alloc a 1g", "free a", "cuMemFree_v2", STAY_NS, OUT_OF_MEMORY);
}

static void what_fits_beside_a_call_that_stays_is_loaded(void **state)
{
	load_beside(*state, "8g", "sync", "alloc a 1g", "cuMemAlloc_v2", BRIEF_NS, OK);
	load_beside(*state, "8g", "sync", "alloc a 1g", "cuMemAlloc_v2", STAY_NS, OK);
	load_beside(*state, "8g", "alloc a 1g", "free a", "cuMemFree_v2", STAY_NS, OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(what_does_not_fit_beside_a_reservation_is_refused),
		test_with_node(what_does_not_fit_beside_a_free_is_refused),
		test_with_node(what_fits_beside_a_call_that_stays_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
