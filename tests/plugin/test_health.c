/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated node's cards report, and what is made of it. The first argument is vgpu-sim. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "node/nvml_library.h"
#include "plugin/devices/health.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static const char *sim;
static struct loop *loop;
static struct inventory devices;
static struct health *health;
static uint64_t unhealthy;
static unsigned changes;

static void changed(void *context, uint64_t now)
{
	unhealthy = now;
	changes++;
}

static int setup(void **state)
{
	struct err err = ERR_NULL;
	struct scratch *s;

	if (scratch_setup(state) || loop_new(&loop))
		return -1;
	s = *state;
	setenv("VGPU_SIM_STATE", s->file, 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	unhealthy = 0;
	changes = 0;
	memset(&devices, 0, sizeof(devices));
	return nvml_library_read_inventory(NULL, &devices, &err);
}

static int teardown(void **state)
{
	health_stop(health);
	health = NULL;
	loop_free(loop);
	return scratch_teardown(state);
}

static void run(unsigned ms)
{
	uint64_t until = clock_now_ns() + ms * 1000000ull;

	while (clock_now_ns() < until)
		assert_int_equal(loop_run(loop, until), 0);
}

static void start(const char *ignores, const char *heeds)
{
	const struct health_request request = {&devices, ignores, heeds, changed, NULL};

	assert_int_equal(health_start(loop, &request, &health), 0);
	if (health)
		run(200); /* until it listens, on a machine that does nothing else */
}

static void do_sim(const char *words)
{
	char command[600];

	snprintf(command, sizeof(command), "%s %s >/dev/null", sim, words);
	assert_int_equal(system(command), 0);
}

static void wait_for(uint64_t wanted)
{
	for (unsigned i = 0; i < 300 && unhealthy != wanted; i++)
		run(100);
	assert_int_equal(unhealthy, wanted);
}

/* The driver tells those that listen by then. */
static void cause(const char *event, uint64_t wanted)
{
	for (unsigned i = 0; i < 300 && unhealthy != wanted; i++) {
		if (i % 10 == 0)
			do_sim(event);
		run(100);
	}
	assert_int_equal(unhealthy, wanted);
}

static void lists_say_which_xids_are_failures(void **state)
{
	assert_true(health_is_failure("", "", 48));
	assert_true(health_is_failure("", "", 79));
	assert_false(health_is_failure("", "", 31));
	assert_false(health_is_failure("", "", 109));
	assert_false(health_is_failure("48, 63", "", 48));
	assert_true(health_is_failure("48,63", "", 64));
	assert_false(health_is_failure("xids", "", 48));
	assert_false(health_is_failure("all", "", 48));
	assert_true(health_is_failure("all", "48", 48));
	assert_true(health_is_failure("xids", "all", 31));
	assert_true(health_is_failure("", "31", 31));
	assert_false(health_is_failure("", "31", 13));
	assert_true(health_is_failure("nonsense,,", ",4x8", 48));
}

/* D9: nor does it end the plugin. */
static void a_failure_is_one_devices_alone(void **state)
{
	start("", "");
	do_sim("event xid 31");
	do_sim("event ecc-corrected");
	run(300);
	assert_int_equal(changes, 0);
	cause("event --device 1 xid 62", 2);
	cause("event ecc-uncorrected", 3);
	assert_int_equal(changes, 2);
}

/* D10: nobody has to start anything again. */
static void a_device_that_returns_is_fit_again(void **state)
{
	start("", "");
	do_sim("card --device 1 lose");
	wait_for(2);
	/* the other one is watched meanwhile */
	cause("event xid 62", 3);
	do_sim("card --device 1 return");
	wait_for(1);
	/* that one which has failed is missing is told to nobody: it may not be seen at once */
	for (unsigned i = 0; i < 20 && unhealthy; i++) {
		do_sim("card lose");
		run(1000);
		do_sim("card return");
		for (unsigned k = 0; k < 50 && unhealthy; k++)
			run(100);
	}
	assert_int_equal(unhealthy, 0);
}

static void a_driver_that_was_restarted_is_found_again(void **state)
{
	start("", "");
	cause("event --device 1 xid 62", 2);
	do_sim("driver stop");
	wait_for(3);
	do_sim("driver start");
	wait_for(0);
	cause("event xid 62", 1);
}

static void what_is_not_to_be_checked_is_not(void **state)
{
	start("all", "");
	assert_null(health);
	start("xids", "");
	do_sim("event xid 62");
	run(300);
	assert_int_equal(changes, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_say_which_xids_are_failures),
		TEST(a_failure_is_one_devices_alone),
		TEST(a_device_that_returns_is_fit_again),
		TEST(a_driver_that_was_restarted_is_found_again),
		TEST(what_is_not_to_be_checked_is_not),
	};

	sim = argv[1];
	return argc == 2 ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
