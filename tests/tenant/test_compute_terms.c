/* SPDX-License-Identifier: Apache-2.0 */
/* What a compute limit comes from, how it changes, and what others read and write of it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "region/layout.h"
#include "tests/tenant/meter.h"

#define FORCE	  "GPU_CORE_UTILIZATION_POLICY=force"
#define DEFAULT	  "GPU_CORE_UTILIZATION_POLICY=default"
#define DISABLE	  "GPU_CORE_UTILIZATION_POLICY=disable"
#define LIMIT	  "CUDA_DEVICE_SM_LIMIT=30"
#define WORK	  "compute launch 500"
#define TOLERANCE 5 /* tenths of a percent; the clock is virtual (tests/clock) */
#define WINDOW_US 800000

/* Until so many ms from now the condition is true. */
#define wait_for(ms, condition)                                               \
	do {                                                                  \
		uint64_t until_ns_ = clock_now_ns() + (ms)*UINT64_C(1000000); \
		while (!(condition) && clock_now_ns() < until_ns_)            \
			usleep(1000);                                         \
		assert_true(condition);                                       \
	} while (0)

static struct tenant *start(struct slice *slice, const char *policy, const char *more)
{
	struct tenant *t = tenant_start(slice->node, slice, "linked", policy, LIMIT, more, NULL);

	expect(t, OK, "primary 0");
	return t;
}

static unsigned settled_permille(struct slice *slice)
{
	usleep(METER_SETTLE_US);
	return meter_permille(slice, 0, WINDOW_US);
}

static void the_policy_says_whether_the_environments_limit_holds(void **state)
{
	struct slice *forced = meter_slice(*state, "forced", "", NULL);
	struct tenant *t = start(forced, FORCE, NULL);

	tenant_tell(t, WORK);
	assert_in_range(settled_permille(forced), 300 - TOLERANCE, 300 + TOLERANCE);
	tenant_kill(t, SIGKILL);
	/* Without a limit the driver takes what there is: so much only, that it ends. */
	t = start(meter_slice(*state, "disabled", "", NULL), DISABLE, NULL);
	expect(t, OK, "time compute launch 500 count=400");
	assert_true(tenant_number(t, "us") < 400000);
	assert_int_equal(tenant_end(t), 0);
}

/* HAMi's monitor clears the switch while nobody else wants the device. */
static void the_switch_says_whether_a_default_limit_holds(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = start(slice, DEFAULT, NULL);
	struct region_file *region = meter_region(slice);

	assert_int_equal(atomic_load(&region->hami.utilization_switch), 1);
	atomic_store(&region->hami.utilization_switch, 0);
	usleep(2 * METER_POLL_US);
	expect(t, OK, "time compute launch 500 count=400");
	assert_true(tenant_number(t, "us") < 400000);
	atomic_store(&region->hami.utilization_switch, 1);
	tenant_tell(t, WORK);
	assert_in_range(settled_permille(slice), 300 - TOLERANCE, 300 + TOLERANCE);
	tenant_kill(t, SIGKILL);
}

static void a_share_holds_whatever_the_policy_and_the_switch(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 20");
	struct tenant *t = start(slice, DISABLE, NULL);

	tenant_tell(t, WORK);
	assert_in_range(settled_permille(slice), 200 - TOLERANCE, 200 + TOLERANCE);
	tenant_kill(t, SIGKILL);
}

static void without_a_limit_nothing_is_measured(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OK, "primary 0");
	expect(t, OK, "compute launch 100 streams=4 count=2000");
	expect(t, OK, "compute graph 20 count=100");
	expect(t, OK, "compute launch 100 sync count=500");
	assert_int_equal(meter_calls(*state, "cuEventCreate"), 0);
	assert_int_equal(meter_calls(*state, "cuEventRecord"), 0);
	assert_int_equal(meter_calls(*state, "cuStreamQuery"), 0);
	assert_int_equal(meter_region(slice)->own.compute[0].busy_ns, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_is_captured_is_left_alone_and_its_replay_pays(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);
	struct region_file *region;
	uint64_t recorded;

	expect(t, OK, "primary 0");
	/* a graph that is made and never launched: its ten nodes are given to nobody */
	expect(t, OK, "compute graph 10000 count=0");
	region = meter_region(slice);
	recorded = meter_calls(*state, "cuEventRecord");
	assert_int_equal(recorded, 0);
	assert_int_equal(region->own.compute[0].busy_ns, 0);
	assert_int_equal(meter_busy_ns(slice, 0), 0);
	expect(t, OK, "time compute graph 1000 count=50");
	assert_true(tenant_number(t, "us") > 1000000);
	assert_true(meter_calls(*state, "cuEventRecord") > 0);
	assert_int_equal(tenant_end(t), 0);
}

static void hamis_words_tell_what_holds(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "priority 3\n", "cores 30 cap 42.5");
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);
	struct hami_region *hami;
	struct hami_slot *slot = NULL;

	expect(t, OK, "primary 0");
	hami = &meter_region(slice)->hami;
	tenant_tell(t, WORK);
	wait_for(3000, atomic_load(&hami->last_kernel_s) > 0);
	assert_int_equal(atomic_load(&hami->recent_kernel), 2);
	assert_int_equal(atomic_load(&hami->sm_limit_percent[0]), 43);
	assert_int_equal(atomic_load(&hami->priority), 3);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		if (atomic_load(&hami->slots[i].pid) == t->pid)
			slot = &hami->slots[i];
	assert_non_null(slot);
	assert_int_equal(atomic_load(&slot->status), HAMI_RUNNING);
	assert_in_range(atomic_load(&hami->last_kernel_s), (uint64_t)time(NULL) - 3,
		(uint64_t)time(NULL) + 1);
	wait_for(5000, __atomic_load_n(&slot->utilization[0].sm, __ATOMIC_RELAXED) > 30);
	assert_in_range(__atomic_load_n(&slot->utilization[0].sm, __ATOMIC_RELAXED), 30, 60);
	tenant_kill(t, SIGKILL);
}

static void the_last_kernels_time_goes_on(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = meter_start(slice, "linked", 0, NULL, WORK);
	struct hami_region *hami;
	uint64_t first;

	assert_int_equal(tenant_answer(t), OK);
	hami = &meter_region(slice)->hami;
	wait_for(3000, atomic_load(&hami->last_kernel_s) > 0);
	first = atomic_load(&hami->last_kernel_s);
	wait_for(3000, atomic_load(&hami->last_kernel_s) > first);
	/* as a monitor counts it down */
	atomic_store(&hami->recent_kernel, 0);
	wait_for(3000, atomic_load(&hami->recent_kernel) == 2);
	tenant_kill(t, SIGKILL);
}

/* Else a monitor takes the slice for idle, and its limits stay off for good. */
static void kernels_without_a_limit_are_seen_by_a_monitor_too(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, "compute launch 500 sync");
	struct hami_region *hami;

	assert_int_equal(tenant_answer(t), OK);
	hami = &meter_region(slice)->hami;
	for (int i = 0; i < 3; i++) {
		atomic_store(&hami->recent_kernel, 0);
		atomic_store(&hami->last_kernel_s, 0);
		wait_for(3000, atomic_load(&hami->recent_kernel) == 2);
		wait_for(3000, atomic_load(&hami->last_kernel_s) > 0);
	}
	tenant_kill(t, SIGKILL);
}

static void a_monitor_that_switched_limits_off_sees_how_busy_a_slice_is(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = start(slice, DEFAULT, NULL);
	struct hami_region *hami = &meter_region(slice)->hami;

	atomic_store(&hami->utilization_switch, 0);
	usleep(2 * METER_POLL_US);
	tenant_tell(t, WORK);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		if (atomic_load(&hami->slots[i].pid) == t->pid)
			wait_for(8000, __atomic_load_n(&hami->slots[i].utilization[0].sm,
					       __ATOMIC_RELAXED) >= 85);
	tenant_kill(t, SIGKILL);
}

static bool stands_still(struct slice *slice)
{
	uint64_t launches, busy_ns;

	/* What was given before is done, and a look ago. */
	usleep(300000);
	launches = meter_calls(slice->node, "cuLaunchKernel");
	busy_ns = meter_busy_ns(slice, 0);
	usleep(300000);
	return meter_calls(slice->node, "cuLaunchKernel") == launches &&
	       meter_busy_ns(slice, 0) == busy_ns;
}

static bool goes_on(struct slice *slice)
{
	uint64_t launches = meter_calls(slice->node, "cuLaunchKernel");

	for (unsigned i = 0; i < 3000; i++) {
		if (meter_calls(slice->node, "cuLaunchKernel") > launches + 10)
			return true;
		usleep(1000);
	}
	return false;
}

static void a_monitor_that_says_so_blocks_a_slice(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, "compute launch 500 sync");
	struct hami_region *hami;

	assert_int_equal(tenant_answer(t), OK);
	assert_true(goes_on(slice));
	hami = &meter_region(slice)->hami;
	atomic_store(&hami->recent_kernel, -1);
	assert_true(stands_still(slice));
	assert_int_equal(atomic_load(&hami->recent_kernel), -1);
	atomic_store(&hami->recent_kernel, 0);
	assert_true(goes_on(slice));
	tenant_kill(t, SIGKILL);
}

#define ASKED (-2) /* whether the monitor lives */

static void a_monitor_that_lives_blocks_a_slice_for_good_and_one_that_is_gone_does_not(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t =
		meter_start(slice, "linked", 0, NULL, "compute launch 500 sync ms=600000");
	struct hami_region *hami;
	uint64_t launches;

	slice->node->is_loud = true;
	assert_true(goes_on(slice));
	hami = &meter_region(slice)->hami;
	atomic_store(&hami->recent_kernel, -1);
	assert_true(stands_still(slice));
	launches = meter_calls(slice->node, "cuLaunchKernel");
	for (unsigned i = 0; i < 3; i++) {
		wait_for(70000, atomic_load(&hami->recent_kernel) == ASKED);
		usleep(5000000); /* its next look */
		assert_int_equal(atomic_load(&hami->recent_kernel), ASKED);
		atomic_store(&hami->recent_kernel, -1);
	}
	assert_int_equal(meter_calls(slice->node, "cuLaunchKernel"), launches);
	wait_for(70000, atomic_load(&hami->recent_kernel) == ASKED);
	wait_for(15000, atomic_load(&hami->recent_kernel) >= 0);
	assert_true(goes_on(slice));
	tenant_kill(t, SIGKILL);
}

static void a_suspended_slice_gives_nothing_to_the_device(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", NULL);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, "compute launch 500 sync");
	struct region_file *region;

	assert_int_equal(tenant_answer(t), OK);
	assert_true(goes_on(slice));
	region = meter_region(slice);
	for (unsigned i = 0; i < 2; i++) {
		meter_change(slice, "suspended\n", NULL);
		assert_true(stands_still(slice));
		assert_true(atomic_load(&region->own.compute[0].limits) & REGION_COMPUTE_SUSPENDED);
		meter_change(slice, "", NULL);
		assert_true(goes_on(slice));
		wait_for(3000,
			!(atomic_load(&region->own.compute[0].limits) & REGION_COMPUTE_SUSPENDED));
	}
	tenant_kill(t, SIGKILL);
}

static void who_begins_in_a_suspended_slice_waits(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "suspended\n", NULL);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, "compute launch 500 sync");

	assert_int_equal(tenant_answer(t), OK);
	assert_true(stands_still(slice));
	assert_int_equal(meter_busy_ns(slice, 0), 0);
	meter_change(slice, "", NULL);
	assert_true(goes_on(slice));
	tenant_kill(t, SIGKILL);
}

/* Who is told to go while it waits goes. */
static void who_waits_can_be_ended(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "suspended\n", NULL);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, WORK);
	uint64_t begun_ns;
	int status;

	assert_int_equal(tenant_answer(t), OK);
	usleep(100000);
	begun_ns = clock_now_ns();
	status = tenant_kill(t, SIGTERM);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_true(clock_now_ns() - begun_ns < 2000000000);
}

static void a_share_that_changes_holds_at_once(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = meter_start(slice, "linked", 0, NULL, WORK);
	struct region_file *region;

	assert_int_equal(tenant_answer(t), OK);
	assert_in_range(settled_permille(slice), 300 - TOLERANCE, 300 + TOLERANCE);
	region = meter_region(slice);
	meter_change(slice, "", "cores 60");
	wait_for(1000, atomic_load(&region->hami.sm_limit_percent[0]) == 60);
	/* what it was kept from when the limit was the old one is given as well */
	assert_in_range(meter_permille(slice, 0, WINDOW_US), 600 - TOLERANCE, 600 + 2 * TOLERANCE);
	meter_change(slice, "", "cores 10");
	wait_for(1000, atomic_load(&region->hami.sm_limit_percent[0]) == 10);
	usleep(100000);
	assert_in_range(meter_permille(slice, 0, WINDOW_US), 100 - TOLERANCE, 100 + TOLERANCE);
	meter_change(slice, "", NULL);
	wait_for(1000, atomic_load(&region->hami.sm_limit_percent[0]) == 100);
	assert_true(meter_permille(slice, 0, WINDOW_US / 4) > 980);
	/* and a limit that comes to who had none */
	meter_change(slice, "", "cores 30");
	wait_for(1000, atomic_load(&region->hami.sm_limit_percent[0]) == 30);
	tenant_kill(t, SIGKILL);
}

/* Eight processes that have never worked pay for what they begin with. */
static void a_limit_holds_over_short_lives(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t;
	struct region_file *region;
	uint64_t begun_ns = clock_now_ns(), passed_ns, busy_ns;

	for (unsigned i = 0; i < 8; i++) {
		t = tenant_start(*state, slice, "linked", NULL);
		expect(t, OK, "primary 0");
		expect(t, OK, "compute launch 1000 count=60");
		assert_int_equal(tenant_end(t), 0);
	}
	passed_ns = clock_now_ns() - begun_ns;
	region = meter_region(slice);
	busy_ns = atomic_load(&region->own.compute[0].busy_ns);
	/* 480 ms of work; the last batches of each may have ended with it, and are charged as estimated */
	assert_in_range(busy_ns, 470000000, 490000000);
	assert_true(passed_ns > UINT64_C(1200000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(the_policy_says_whether_the_environments_limit_holds),
		test_with_node(the_switch_says_whether_a_default_limit_holds),
		test_with_node(a_share_holds_whatever_the_policy_and_the_switch),
		test_with_node(without_a_limit_nothing_is_measured),
		test_with_node(what_is_captured_is_left_alone_and_its_replay_pays),
		test_with_node(hamis_words_tell_what_holds),
		test_with_node(the_last_kernels_time_goes_on),
		test_with_node(kernels_without_a_limit_are_seen_by_a_monitor_too),
		test_with_node(a_monitor_that_switched_limits_off_sees_how_busy_a_slice_is),
		test_with_node(a_monitor_that_says_so_blocks_a_slice),
		test_with_node(
			a_monitor_that_lives_blocks_a_slice_for_good_and_one_that_is_gone_does_not),
		test_with_node(a_suspended_slice_gives_nothing_to_the_device),
		test_with_node(who_begins_in_a_suspended_slice_waits),
		test_with_node(who_waits_can_be_ended),
		test_with_node(a_share_that_changes_holds_at_once),
		test_with_node(a_limit_holds_over_short_lives),
	};

	return cmocka_run_group_tests_name("compute_terms", tests, NULL, NULL);
}
