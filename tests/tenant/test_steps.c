/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is killed or stopped at each step of the tenant library, on the way of the tour (client_tour.c)
 * through all covered functions. The library under test is a build with base/fault.h's places in it
 * (fault_env.c).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/tenant/course.h"
#include "tests/tenant/places.h"
#include "tests/unit/lingering.h"

static bool kill_there(struct course *c, const char *fault, struct tenant *other)
{
	struct tenant *victim = course_start(c, fault);
	int status;

	tenant_tell(victim, TOUR);
	status = tenant_end(victim);
	if (status == 0)
		return false;
	assert_int_equal(status, SIGKILL);
	if (!other)
		other = tenant_new(c->slice);
	course_expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
	return true;
}

static bool stop_there(struct course *c, const char *fault, struct tenant *other)
{
	struct tenant *victim = course_start(c, fault), *late;

	tenant_tell(victim, TOUR);
	tenant_hang_up(victim);
	if (!tenant_stops(victim)) {
		course_expect_tour(victim);
		assert_int_equal(tenant_end(victim), 0);
		return false;
	}
	if (!other)
		other = tenant_new(c->slice);
	course_expect_within(other, PEER_US, OK, "alloc a 64m");
	course_expect_within(other, PEER_US, OK, "free a");
	course_expect_within(other, PEER_US, OUT_OF_MEMORY, "alloc a 8g");
	late = tenant_start(c->node, c->slice, "linked", NULL);
	expect(late, OK, "init");
	course_expect_within(late, PEER_US, OK, "primary 0");
	course_expect_within(late, PEER_US, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_end(late), 0);
	course_expect_within(other, 2 * PEER_US, OUT_OF_MEMORY, "fill 64m");
	expect(other, OK, "drop");
	tenant_kill(victim, SIGCONT);
	course_expect_tour(victim);
	assert_int_equal(tenant_end(victim), 0);
	course_expect_all_for(c, other);
	assert_int_equal(tenant_end(other), 0);
	return true;
}

static void a_process_killed_at_any_step_leaves_all_to_the_others(void **state)
{
	places_try_everywhere(*state, "kill", kill_there);
}

static void a_process_stopped_at_any_step_stops_nobody_and_goes_on(void **state)
{
	places_try_everywhere(*state, "stop", stop_there);
}

/* Takes a slot and 64 MiB, and is then on its way out for as long as the test lets it. */
static int linger(int fd, void *argument)
{
	struct slice *slice = argument;
	struct region region = REGION_NULL;
	unsigned slot;

	if (region_open(slice->region, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		ledger_charge(region.file, slot, 0, 1024, LEDGER_NO_LIMIT) != 0)
		return 1;
	region_close(&region);
	lingering_end_first(fd);
	return 2;
}

/* 50 ms for the peer, and some for the rest of the call; the clock is virtual. */
#define ONE_WAIT_US 52000

static void expect_one_wait(struct tenant *t, int want, const char *what)
{
	usleep(SLOT_REST_NS / 1000);
	/* A free that is not settled, so that a pool's allocation looks twice. */
	expect(t, OK, "async soon 32m");
	expect(t, OK, "freeasync soon");
	course_expect_within(t, ONE_WAIT_US, want, what);
}

static void a_call_waits_for_a_lingering_peer_only_once(void **state)
{
	static const char *const calls[] = {"alloc a 8g", "async a 8g", "newctx c 0", "create h 8g",
		"managed a 8g", "pitch a 1m 8k"};
	struct course c = course_begin(*state);
	struct tenant *t = tenant_new(c.slice);
	struct child peer = child_start(linger, c.slice);
	pid_t thread = lingering_hear(&peer);

	assert_true(lingering_end_last(&peer, thread));
	expect(t, OK, "alloc hold 3g");
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		expect_one_wait(t, OUT_OF_MEMORY, calls[i]);
	expect_one_wait(t, OK, "threads 4 1 8g");
	assert_int_equal(lingering_let_go(&peer, thread), 0);
	expect(t, OK, "free hold");
	expect(t, OK, "sync");
	course_expect_all_for(&c, t);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_process_killed_at_any_step_leaves_all_to_the_others),
		test_with_node(a_process_stopped_at_any_step_stops_nobody_and_goes_on),
		test_with_node(a_call_waits_for_a_lingering_peer_only_once),
	};

	return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
