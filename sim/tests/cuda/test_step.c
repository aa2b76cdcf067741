/* SPDX-License-Identifier: Apache-2.0 */
/* Who is served next, on a clock of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "sim/machine/schedule_step.h"
#include "sim/machine/utilization.h"

#define MS    UINT64_C(1000000)
#define BEGIN (1000 * MS)

static struct schedule_view view;
static uint64_t served[8];

/* A member that begins at BEGIN with this work. */
static void join(uint64_t party, uint32_t percent, const struct layout_span *span, uint32_t count)
{
	view.member[view.count] = (struct schedule_member){.slot = view.count,
		.percent = percent,
		.party = party,
		.span = span,
		.span_count = count};
	view.count++;
}

static int set_up(void **state)
{
	(void)state;
	view = (struct schedule_view){.at_ns = BEGIN, .slice_ns = 2 * MS};
	for (int i = 0; i < 8; i++)
		served[i] = 0;
	return 0;
}

static void run_until(uint64_t end_ns)
{
	while (view.at_ns < end_ns) {
		uint64_t from = view.at_ns, until = schedule_plan(&view, end_ns);

		assert_true(until > from);
		for (uint32_t i = 0; i < view.count; i++) {
			if (view.member[i].standing == SCHEDULE_SERVED)
				served[i] += (until - from) * 100 / view.member[i].load;
		}
		schedule_pass(&view, until);
	}
}

static uint64_t clock_of(int member)
{
	return view.at_ns - view.member[member].lag_ns;
}

static void two_processes_get_half_each(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 100 * MS};

	(void)state;
	join(1, 100, &work, 1);
	join(2, 100, &work, 1);
	run_until(BEGIN + 100 * MS);
	assert_int_equal(served[0], 50 * MS);
	assert_int_equal(served[1], 50 * MS);
	assert_int_equal(clock_of(0), BEGIN + 50 * MS);
	run_until(BEGIN + 198 * MS);
	/* The one whose turn was first is done, and was not held up after that. */
	assert_int_equal(served[1], 100 * MS);
	assert_int_equal(clock_of(1), BEGIN + 100 * MS);
	assert_int_equal(served[0], 98 * MS);
	run_until(BEGIN + 300 * MS);
	assert_int_equal(served[0], 100 * MS);
	assert_int_equal(clock_of(0), BEGIN + 200 * MS);
}

static void hold(uint32_t member, const struct layout_hold *holds, uint32_t count)
{
	view.member[member].hold = holds;
	view.member[member].hold_count = count;
}

static void a_process_that_waits_for_another_stands_still_until_that_is_done(void **state)
{
	static const struct layout_span first = {BEGIN, BEGIN + 10 * MS},
					second = {BEGIN, BEGIN + 20 * MS};
	static const struct layout_hold wait = {
		.at_ns = BEGIN + MS, .until_ns = BEGIN + 10 * MS, .slot = 0};

	(void)state;
	join(1, 100, &first, 1);
	join(2, 100, &second, 1);
	hold(1, &wait, 1);
	/* It has a millisecond of its work before it waits. */
	run_until(BEGIN + 11 * MS);
	assert_int_equal(served[0], 10 * MS);
	assert_int_equal(served[1], MS);
	assert_int_equal(clock_of(1), BEGIN + MS);
	run_until(BEGIN + 40 * MS);
	assert_int_equal(served[1], 20 * MS);
	assert_int_equal(clock_of(1), BEGIN + 30 * MS);
}

static void nobody_waits_for_who_is_gone_or_waits_for_him(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 10 * MS},
					later = {BEGIN + 10 * MS, BEGIN + 20 * MS};
	static const struct layout_hold gone = {.at_ns = BEGIN, .until_ns = BEGIN + MS, .slot = 7},
					first = {.at_ns = BEGIN + 10 * MS,
						.until_ns = BEGIN + 15 * MS,
						.slot = 2},
					second = {.at_ns = BEGIN + 10 * MS,
						.until_ns = BEGIN + 15 * MS,
						.slot = 1};

	(void)state;
	join(1, 100, &work, 1);
	hold(0, &gone, 1);
	run_until(BEGIN + 10 * MS);
	assert_int_equal(served[0], 10 * MS);
	join(2, 100, &later, 1);
	join(3, 100, &later, 1);
	hold(1, &first, 1);
	hold(2, &second, 1);
	run_until(BEGIN + 40 * MS);
	assert_int_equal(served[1] + served[2], 20 * MS);
}

static void a_change_to_another_process_takes_time(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 8 * MS};
	struct layout_span last;

	(void)state;
	view.change_ns = MS;
	join(1, 100, &work, 1);
	join(2, 100, &work, 1);
	run_until(BEGIN + MS);
	assert_int_equal(served[0] + served[1], 0);
	run_until(BEGIN + 12 * MS);
	assert_int_equal(served[0], 4 * MS);
	assert_int_equal(served[1], 4 * MS);
	/* Eight pieces of 2 ms, each after a change. */
	run_until(BEGIN + 24 * MS);
	assert_int_equal(served[0] + served[1], 16 * MS);
	/* Whoever was there last has it at once. */
	last = (struct layout_span){clock_of(0) + MS, clock_of(0) + 2 * MS};
	view.member[0].span = &last;
	view.member[0].span_count = 1;
	run_until(BEGIN + 26 * MS);
	assert_int_equal(served[0], 9 * MS);
}

static void turns_go_round_and_pass_over_who_has_nothing(void **state)
{
	static const struct layout_span long_work = {BEGIN, BEGIN + 100 * MS},
					short_work = {BEGIN, BEGIN + MS},
					late_work = {BEGIN + 4 * MS, BEGIN + 100 * MS};

	(void)state;
	join(1, 100, &long_work, 1);
	join(2, 100, &short_work, 1);
	join(3, 100, &late_work, 1);
	/* 2 ms for the first, 1 ms for the second, 1 ms for the first that is alone. */
	run_until(BEGIN + 4 * MS);
	assert_int_equal(served[0], 3 * MS);
	assert_int_equal(served[1], 1 * MS);
	assert_int_equal(served[2], 0);
	run_until(BEGIN + 44 * MS);
	assert_int_equal(served[0] + served[2], 43 * MS);
	assert_in_range(served[2], 19 * MS, 21 * MS);
}

static void a_lone_process_runs_at_full_speed_through_pauses(void **state)
{
	static const struct layout_span work[] = {
		{BEGIN + MS, BEGIN + 3 * MS}, {BEGIN + 10 * MS, BEGIN + 17 * MS}};

	(void)state;
	join(1, 100, work, 2);
	run_until(BEGIN + 20 * MS);
	assert_int_equal(served[0], 9 * MS);
	assert_int_equal(clock_of(0), BEGIN + 20 * MS);
}

static void clients_of_a_server_run_side_by_side(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 100 * MS};

	(void)state;
	join(1, 60, &work, 1);
	join(1, 40, &work, 1);
	run_until(BEGIN + 10 * MS);
	assert_int_equal(served[0], 10 * MS);
	assert_int_equal(served[1], 10 * MS);
	join(1, 100, &work, 1);
	run_until(BEGIN + 30 * MS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(served[i], 20 * MS);
	assert_int_equal(served[2], 10 * MS);
}

static void a_server_takes_turns_with_other_processes(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 100 * MS};

	(void)state;
	join(1, 50, &work, 1);
	join(2, 100, &work, 1);
	join(1, 50, &work, 1);
	join(3, 100, &work, 1);
	run_until(BEGIN + 60 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(served[i], 20 * MS);
}

static void who_is_halted_stands_still_and_holds_up_nobody(void **state)
{
	static const struct layout_span work = {BEGIN, BEGIN + 100 * MS};

	(void)state;
	join(1, 100, &work, 1);
	join(2, 100, &work, 1);
	view.member[0].is_halted = true;
	run_until(BEGIN + 10 * MS);
	assert_int_equal(served[1], 10 * MS);
	assert_int_equal(clock_of(0), BEGIN);
	view.member[0].is_halted = false;
	run_until(BEGIN + 30 * MS);
	assert_in_range(served[0], 8 * MS, 12 * MS);
}

static void work_is_remembered_for_its_time(void **state)
{
	static struct layout_utilization busy;
	uint64_t now = BEGIN + 500 * MS;

	(void)state;
	utilization_credit(&busy, now - 300 * MS, now - 200 * MS, 100 * MS);
	utilization_credit(&busy, now - 100 * MS, now, 50 * MS);
	assert_int_equal(busy.work_ns, 150 * MS);
	assert_in_range(utilization_within(&busy, now, 400 * MS), 149 * MS, 150 * MS);
	assert_in_range(utilization_within(&busy, now, 150 * MS), 49 * MS, 50 * MS);
	assert_in_range(utilization_within(&busy, now, 50 * MS), 24 * MS, 26 * MS);
	/* What is older than the history is forgotten, and periods used again begin anew. */
	utilization_credit(&busy, now, now + 10000 * MS, 10000 * MS);
	assert_in_range(
		utilization_within(&busy, now + 10000 * MS, 1000 * MS), 990 * MS, 1000 * MS);
	assert_int_equal(utilization_within(&busy, now + 20000 * MS, 1000 * MS), 0);
}

#define STEP(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEP(two_processes_get_half_each),
		STEP(a_process_that_waits_for_another_stands_still_until_that_is_done),
		STEP(nobody_waits_for_who_is_gone_or_waits_for_him),
		STEP(a_change_to_another_process_takes_time),
		STEP(turns_go_round_and_pass_over_who_has_nothing),
		STEP(a_lone_process_runs_at_full_speed_through_pauses),
		STEP(clients_of_a_server_run_side_by_side),
		STEP(a_server_takes_turns_with_other_processes),
		STEP(who_is_halted_stands_still_and_holds_up_nobody),
		STEP(work_is_remembered_for_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
