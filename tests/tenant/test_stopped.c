/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint stops a process for longer than its threads wait for each other: nothing is refused when it goes on. On the virtual clock.
 */
#include <unistd.h>

#include "tests/tenant/tenant.h"

#define STOPPED_US 13000000
#define RUNNERS	   12
#define STEP_MS	   1100

static void stop(struct tenant *by, const struct tenant *of)
{
	expect(by, OK, "move lock %d", of->pid);
	expect(by, OK, "move checkpoint %d", of->pid);
}

static void let_go_on(struct tenant *by, const struct tenant *of)
{
	expect(by, OK, "move restore %d", of->pid);
	expect(by, OK, "move unlock %d", of->pid);
}

/* The first one is kept in a comparison, by the questions for a pool in it. */
static void threads_that_come_meanwhile_are_served_afterwards(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(slice);

	expect(one, OK, "pool p");
	expect(one, OK, "frompool a p 64m");
	expect(two, OK, "alloc b 64m");
	tenant_tell(one, "relay %d %d 2m", RUNNERS, STEP_MS);
	usleep(STEP_MS * 1000 / 2);
	stop(two, one);
	usleep(STOPPED_US);
	let_go_on(two, one);
	assert_int_equal(tenant_answer(one), OK);
	assert_int_equal(tenant_number(one, "refused"), 0);
	assert_int_equal(tenant_number(one, "done"), RUNNERS);
	expect(one, OK, "alloc c 64m");
}

/* A free in stream order holds off changes of what is captured, and a stream that is made is one. */
static void a_stream_waits_for_a_call_that_was_stopped(void **state)
{
	struct inject_rule slow = {.symbol = "cuMemFreeAsync", .tag = "*", .delay_ns = 500000000};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *one = tenant_new(slice), *two = tenant_new(slice);

	expect(one, OK, "stream s");
	expect(one, OK, "alloc a 64m");
	assert_true(inject_add_rule(slice->node->machine, &slow) >= 0);
	expect(one, OK, "aside freeasync a s");
	usleep(100000);
	tenant_tell(one, "stream t");
	usleep(100000);
	stop(two, one);
	usleep(STOPPED_US);
	let_go_on(two, one);
	assert_int_equal(tenant_answer(one), OK);
	expect(one, OK, "joined");
	slice->slack_bytes = TWO_STREAMS_BYTES;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_that_come_meanwhile_are_served_afterwards,
			node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(
			a_stream_waits_for_a_call_that_was_stopped, node_setup, node_teardown),
	};

	return cmocka_run_group_tests_name("stopped", tests, NULL, NULL);
}
