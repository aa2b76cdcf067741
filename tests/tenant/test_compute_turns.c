/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that share a card take turns on it, and each gets what its share says, also of what others leave. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "region/layout.h"
#include "region/turn.h"
#include "tests/tenant/meter.h"

#define SLICES	  3
#define PROCESSES 16
#define LENT_US	  10000000
/* Without a limit the simulated driver queues whatever it is given: 32 ms of it here. */
#define QUEUED	  "compute launch 500 each=64"
#define BUSY_HOST "compute launch 60 host=300 each=200"
/* 5 ms of work at a time, and 0.4 of its own behind each. */
#define STEPS_AND_PAUSES "compute launch 333 each=15 host=400"
#define PAUSES		 40 /* permille of its own turns */
/* 0.5 to 1 s of kernels of 60 ms. */
#define LONG_QUEUED	 "compute launch 60000 ahead=8"
#define LONG_WINDOW_US	 6000000
#define LONG_KERNEL	 10 /* permille of it */
#define LONG_LOST	 30 /* half a kernel of 100 ms in 5 s, and the fiftieth that turns may take */
#define LONGER_WINDOW_US 9000000
#define LONGER_LOST	 40 /* a kernel of 300 ms in 9 s, and as above */
#define WINDOW_US \
	(2 * METER_WINDOW_US) /* half of a turn more or less at its ends is 2 of a thousand */
#define TOLERANCE     6	      /* tenths of a percent; the clock is virtual (tests/clock) */
#define LOST	      12 /* the same below: also what the device takes to change over, 0.15 ms a turn */

#define LOST_OF_THREE 25 /* the same where the third hardly works */

/* Slices of a node that know each other by a folder. */
struct couple {
	struct node *node;
	char lines[200];
	unsigned count;
	struct slice *slices[SLICES];
	struct tenant *tenants[SLICES];
	unsigned permille[SLICES]; /* as measured last */
};

static struct couple couple_of(void **state)
{
	struct couple c = {.node = *state};

	snprintf(c.lines, sizeof(c.lines), "turns %s/turns\n", c.node->dir);
	return c;
}

static void join(struct couple *c, const char *terms, const char *work)
{
	static const char *const names[SLICES] = {"a", "b", "c"};
	unsigned i = c->count++;

	c->slices[i] = meter_slice(c->node, names[i], c->lines, terms);
	c->tenants[i] = meter_start(c->slices[i], "linked", 0, NULL, work);
	assert_int_equal(tenant_answer(c->tenants[i]), OK);
}

static void measure(struct couple *c, unsigned window_us)
{
	uint64_t from_ns = machine_now_ns(), busy_ns[SLICES];

	for (unsigned i = 0; i < c->count; i++)
		busy_ns[i] = meter_busy_ns(c->slices[i], 0);
	usleep(window_us);
	for (unsigned i = 0; i < c->count; i++) {
		busy_ns[i] = meter_busy_ns(c->slices[i], 0) - busy_ns[i];
		c->permille[i] = (unsigned)(busy_ns[i] * 1000 / (machine_now_ns() - from_ns));
		print_message("%s: %u permille\n", c->slices[i]->name, c->permille[i]);
	}
}

/* Until kernels are known and what the first ones took is paid. */
static void settle(void)
{
	usleep(METER_SETTLE_US);
}

/* So many turns the first of them has taken so far. */
static uint64_t turns_of_first(const struct couple *c)
{
	struct turn_view views[SLICES];
	char folder[PATH_MAX];
	unsigned count;

	snprintf(folder, sizeof(folder), "%s/turns", c->node->dir);
	assert_int_equal(
		turn_read(folder, c->node->uuid[0], machine_now_ns(), views, SLICES, &count), 0);
	for (unsigned i = 0; i < count; i++)
		if (views[i].slice[0] == 'a')
			return views[i].turns;
	fail();
	return 0;
}

static void two_halves_are_halves(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 50", "compute launch 500");
	join(&c, "cores 50", "compute launch 500");
	settle();
	measure(&c, WINDOW_US);
	assert_in_range(c.permille[0], 500 - LOST, 500 + TOLERANCE);
	assert_in_range(c.permille[1], 500 - LOST, 500 + TOLERANCE);
}

static void each_gets_its_own_share_beside_the_other(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 30", "compute launch 200");
	join(&c, "cores 60", "compute launch 1000");
	settle();
	measure(&c, WINDOW_US);
	assert_in_range(c.permille[0], 300 - LOST, 300 + TOLERANCE);
	assert_in_range(c.permille[1], 600 - LOST, 600 + TOLERANCE);
}

static void three_get_their_shares_however_they_work(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 20", "compute launch 100 sync");
	join(&c, "cores 30", "compute launch 500 streams=4");
	join(&c, "cores 40", "compute graph 100");
	settle();
	measure(&c, WINDOW_US);
	assert_in_range(c.permille[0], 200 - LOST, 200 + TOLERANCE);
	assert_in_range(c.permille[1], 300 - LOST, 300 + TOLERANCE);
	assert_in_range(c.permille[2], 400 - LOST, 400 + TOLERANCE);
}

/* What is lent is taken back at once, and lent again when nobody wants it. */
static void what_nobody_uses_is_lent(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 30 cap 100", QUEUED);
	settle();
	measure(&c, METER_WINDOW_US / 2);
	assert_true(c.permille[0] > 990);
	join(&c, "cores 60", "compute launch 500");
	/* and what it was charged while the other's queue was still there is paid */
	usleep(METER_WINDOW_US);
	/* The larger one saves up for 70 ms at once, and 45 ms are the other's. */
	measure(&c, WINDOW_US);
	assert_in_range(c.permille[0], 300 - LOST, 400 + TOLERANCE);
	assert_in_range(c.permille[1], 600 - LOST, 600 + TOLERANCE);
	tenant_kill(c.tenants[1], SIGKILL);
	c.count = 1;
	settle();
	measure(&c, METER_WINDOW_US / 2);
	assert_true(c.permille[0] > 990);
}

/* What others left it while they were there is not owed to those who come later. */
static void who_was_lent_time_has_its_share_when_another_comes(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 60 cap 100", QUEUED);
	join(&c, "cores 1 cap 1", "compute launch 500");
	usleep(LENT_US);
	join(&c, "cores 30 cap 100", QUEUED);
	settle();
	measure(&c, WINDOW_US);
	assert_true(c.permille[0] + LOST_OF_THREE >= 600);
	assert_true(c.permille[2] + LOST_OF_THREE >= 300);
}

/* Where it is alone again it is not metered any more, with work under way. */
static void who_was_left_alone_has_its_share_when_another_comes(void **state)
{
	struct couple c = couple_of(state);
	uint64_t from_ns, busy_ns;

	join(&c, "cores 60 cap 100", BUSY_HOST);
	join(&c, "cores 30 cap 100", BUSY_HOST);
	settle();
	from_ns = machine_now_ns();
	busy_ns = meter_busy_ns(c.slices[0], 0);
	tenant_kill(c.tenants[1], SIGKILL);
	usleep(WINDOW_US);
	assert_in_range(meter_busy_ns(c.slices[0], 0) - busy_ns, 1, machine_now_ns() - from_ns);
	join(&c, "cores 30 cap 100", BUSY_HOST);
	settle();
	measure(&c, WINDOW_US);
	assert_true(c.permille[0] + LOST >= 600);
	assert_true(c.permille[2] + LOST >= 300);
}

/* Two that lend, of which the second comes while the first has long kernels queued. */
static void come_beside_long_kernels(void **state, const unsigned cores[2], const char *cap)
{
	struct couple c = couple_of(state);
	char terms[64];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(terms, sizeof(terms), "cores %u cap %s", cores[i], cap);
		join(&c, terms, LONG_QUEUED);
		settle();
	}
	/* What was queued before runs on beside the other one's work. */
	usleep(2 * METER_WINDOW_US);
	measure(&c, LONG_WINDOW_US);
	for (unsigned i = 0; i < 2; i++)
		assert_true(c.permille[i] + LOST + LONG_KERNEL >= cores[i] * 10);
}

static void long_kernels_that_were_queued_while_alone_cost_no_turns(void **state)
{
	come_beside_long_kernels(state, (const unsigned[]){30, 60}, "100");
}

static void nor_do_they_where_the_larger_slice_had_queued_them(void **state)
{
	come_beside_long_kernels(state, (const unsigned[]){60, 30}, "100");
}

/* Beside another one's each takes twice as long, and that is not what a program hides. */
static void the_first_long_kernels_beside_another_slice_cost_no_turns(void **state)
{
	come_beside_long_kernels(state, (const unsigned[]){30, 60}, "99");
}

/* A turn holds two kernels at most, and the larger slice has several turns to one of the other's. */
static void kernels_of_100_ms_keep_the_shares_of_two_that_lend(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 30 cap 100", "compute launch 100000 ahead=2");
	join(&c, "cores 70 cap 100", "compute launch 100000 ahead=2");
	/* The first ones run beside each other, as nobody knows them. */
	usleep(5000000);
	for (unsigned i = 0; i < 4; i++) {
		measure(&c, 5000000);
		assert_in_range(c.permille[0], 300 - LONG_KERNEL, 300 + LONG_LOST);
		assert_in_range(c.permille[1], 700 - LONG_LOST, 700 + LONG_KERNEL);
	}
}

/* A turn lasts as long as the one kernel that it begins with. */
static void kernels_of_300_ms_keep_shares(
	void **state, const unsigned cores[2], const char *cap, const char *second)
{
	struct couple c = couple_of(state);
	char terms[64];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(terms, sizeof(terms), "cores %u cap %s", cores[i], cap);
		join(&c, terms, i ? second : "compute launch 300000 ahead=2");
	}
	/* The first ones run beside each other, as nobody knows them, and a slice is barred for it. */
	usleep(30000000);
	for (unsigned i = 0; i < 3; i++) {
		measure(&c, LONGER_WINDOW_US);
		for (unsigned k = 0; k < 2; k++)
			assert_in_range(c.permille[k], cores[k] * 10 - LONGER_LOST,
				cores[k] * 10 + LONGER_LOST);
	}
}

static void kernels_of_300_ms_keep_the_shares_of_two(void **state)
{
	kernels_of_300_ms_keep_shares(
		state, (const unsigned[]){50, 50}, "50", "compute launch 300000 ahead=2");
}

static void and_of_two_that_lend(void **state)
{
	kernels_of_300_ms_keep_shares(
		state, (const unsigned[]){50, 50}, "100", "compute launch 300000 ahead=2");
}

static void and_beside_short_ones(void **state)
{
	kernels_of_300_ms_keep_shares(
		state, (const unsigned[]){70, 30}, "100", "compute launch 500 ahead=8");
}

/* It runs on beside the other one's work, and nothing can cut it; but it is not forgotten. */
static void who_queues_seconds_of_work_while_alone_pays_for_it(void **state)
{
	struct couple c = couple_of(state);
	uint64_t charged_ns;

	join(&c, "cores 30 cap 100", "compute launch 20000 ahead=150");
	settle();
	join(&c, "cores 60 cap 100", "compute launch 500 ahead=8");
	/* The first 150 end, and the next are found under way, until these end. */
	usleep(6500000);
	charged_ns = meter_books(c.slices[0])->elapsed_ns;
	usleep(5000000);
	assert_true(meter_books(c.slices[0])->elapsed_ns - charged_ns > 4 * UINT64_C(1000000000));
	usleep(1500000);
	measure(&c, WINDOW_US);
	assert_true(c.permille[0] < 10);
	assert_true(c.permille[1] > 980);
}

static void who_is_killed_with_the_turn_holds_nobody_up(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 50 cap 100", QUEUED);
	for (unsigned i = 0; i < 3; i++) {
		c.count = 1;
		join(&c, "cores 50", "compute launch 2000");
		usleep(METER_SETTLE_US);
		tenant_kill(c.tenants[1], SIGKILL);
		c.count = 1;
		/* the page of the dead counts for tens of ms, and is alive for a second */
		measure(&c, METER_WINDOW_US / 3);
		assert_true(c.permille[0] > 980);
	}
}

static void who_is_stopped_with_the_turn_holds_nobody_up(void **state)
{
	struct couple c = couple_of(state);

	join(&c, "cores 50 cap 100", QUEUED);
	join(&c, "cores 50", "compute launch 2000");
	usleep(METER_SETTLE_US);
	for (unsigned i = 0; i < 3; i++) {
		tenant_kill(c.tenants[1], SIGSTOP);
		usleep(100000);
		measure(&c, METER_WINDOW_US / 3);
		assert_true(c.permille[0] > 990);
		tenant_kill(c.tenants[1], SIGCONT);
		usleep(METER_SETTLE_US);
	}
	measure(&c, WINDOW_US);
	assert_in_range(c.permille[1], 500 - LOST, 500 + TOLERANCE);
}

/* And whoever owes a little has turns as long as others: a change of turns costs the device 0.15 ms. */
static void two_processes_of_a_slice_share_its_turns(void **state)
{
	struct couple c = couple_of(state);
	struct tenant *second;
	uint64_t turns;

	join(&c, "cores 40", "compute launch 500");
	second = meter_start(c.slices[0], "linked", 0, NULL, "compute launch 500");
	assert_int_equal(tenant_answer(second), OK);
	join(&c, "cores 50", "compute launch 500");
	settle();
	turns = turns_of_first(&c);
	measure(&c, WINDOW_US);
	assert_in_range(turns_of_first(&c) - turns, WINDOW_US / 30000, WINDOW_US / 16000);
	assert_in_range(c.permille[0], 400 - LOST, 400 + TOLERANCE);
	assert_in_range(c.permille[1], 500 - LOST, 500 + TOLERANCE);
}

/* A program that waits for each of its steps, of 5 ms, and is busy itself for a moment then, keeps its turn for the next one. */
static void who_waits_for_each_step_has_its_share_beside_who_queues(void **state)
{
	struct couple c = couple_of(state);

	join(&c, NULL, STEPS_AND_PAUSES);
	join(&c, NULL, QUEUED);
	settle();
	measure(&c, 4 * WINDOW_US);
	assert_in_range(c.permille[0], 500 - LOST - PAUSES, 500 + TOLERANCE);
	assert_in_range(c.permille[1], 500 - LOST, 500 + TOLERANCE);
}

/* Priority 0 takes what it needs, and the others have the rest. */
/* Who dies, or is stopped, between the slice's word and the launch: what it says counts for a second. */
static void holding_up(void **state, const char *fault, unsigned least_ms, unsigned most_ms)
{
	struct couple c = couple_of(state);
	struct tenant *victim, *other;
	uint64_t from_ns;

	join(&c, "cores 60", "compute launch 500");
	c.slices[1] = meter_slice(c.node, "b", c.lines, "cores 30");
	other = tenant_start(
		c.node, c.slices[1], "linked", "GPU_CORE_UTILIZATION_POLICY=force", NULL);
	tenant_tell(other, "primary 0");
	assert_int_equal(tenant_answer(other), OK);
	victim = tenant_start(
		c.node, c.slices[1], "linked", "GPU_CORE_UTILIZATION_POLICY=force", fault, NULL);
	tenant_tell(victim, "primary 0");
	assert_int_equal(tenant_answer(victim), OK);
	tenant_tell(victim, "compute launch 1000 count=1");
	usleep(100000);
	from_ns = machine_now_ns();
	tenant_tell(other, "compute launch 1000 count=1");
	assert_int_equal(tenant_answer(other), OK);
	print_message("%s: %llu ms\n", fault,
		(unsigned long long)((machine_now_ns() - from_ns) / 1000000));
	assert_in_range(machine_now_ns() - from_ns, least_ms * UINT64_C(1000000),
		most_ms * UINT64_C(1000000));
	tenant_kill(victim, SIGKILL);
}

static void who_is_killed_with_the_piece_that_nobody_knows_holds_nobody_up(void **state)
{
	holding_up(state, "VGPU_FAULT=kill 1 unknowns: begun", 0, 1200);
}

static void nor_for_longer_than_a_second_who_is_stopped(void **state)
{
	holding_up(state, "VGPU_FAULT=stop 1 unknowns: begun", 700, 1200);
}

/* So long until all of so many processes have done that work, beside a slice that works all the time. */
static uint64_t time_of_many(void **state, const char *work)
{
	struct couple c = couple_of(state);
	struct tenant *tenants[PROCESSES];
	uint64_t from_ns;

	join(&c, "cores 60", "compute launch 500");
	c.slices[1] = meter_slice(c.node, "b", c.lines, "cores 30");
	for (unsigned i = 0; i < PROCESSES; i++) {
		tenants[i] = tenant_start(
			c.node, c.slices[1], "linked", "GPU_CORE_UTILIZATION_POLICY=force", NULL);
		tenant_tell(tenants[i], "primary 0");
		assert_int_equal(tenant_answer(tenants[i]), OK);
	}
	from_ns = machine_now_ns();
	for (unsigned i = 0; i < PROCESSES; i++)
		tenant_tell(tenants[i], "%s", work);
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(tenant_answer(tenants[i]), OK);
	print_message("%s: %llu ms\n", work,
		(unsigned long long)((machine_now_ns() - from_ns) / 1000000));
	return machine_now_ns() - from_ns;
}

/* One piece that nobody knows at a time in a slice: 0.26 s of such work take 0.85 s at 30 %, and some more. */
static void many_processes_that_begin_beside_another_slice_are_not_held_up(void **state)
{
	assert_in_range(time_of_many(state, "compute kinds 200 count=80"), 700000000, 1400000000);
}

/* 1.2 s, and up to 1.74 beside busy loops; 2.4 to 2.7 where each process had such a piece. */
static void nor_are_they_where_they_go_on_with_something_else(void **state)
{
	assert_in_range(time_of_many(state, "compute kinds 200 count=80 host=20000"), 700000000,
		2100000000);
}

static void who_goes_first_is_not_held_up_by_who_goes_later(void **state)
{
	struct couple c = couple_of(state);
	char later[256];

	snprintf(later, sizeof(later), "%spriority 5\n", c.lines);
	c.slices[0] = meter_slice(c.node, "a", later, NULL);
	c.tenants[0] = meter_start(c.slices[0], "linked", 0, NULL, QUEUED);
	assert_int_equal(tenant_answer(c.tenants[0]), OK);
	c.count = 1;
	snprintf(c.lines + strlen(c.lines), sizeof(c.lines) - strlen(c.lines), "priority 0\n");
	/* a ms of work in three */
	join(&c, NULL, "compute launch 1000 sync idle");
	settle();
	measure(&c, WINDOW_US);
	assert_true(c.permille[1] > 300);
	assert_true(c.permille[0] > 320);
}

/*
 * Each has work of both devices in its graphs, in streams of another one: who held one's turn and waited for that of the other, as the other did,
 * would have neither for long.
 */
static void whose_graphs_need_the_turns_of_two_devices_share_them(void **state)
{
	struct couple c = couple_of(state);
	uint64_t busy_ns[2];

	meter_use_board(c.node, METER_SLOW_BOARD);
	for (unsigned i = 0; i < 2; i++) {
		c.slices[i] = meter_slice(c.node, i ? "b" : "a", c.lines, "cores 50");
		tenant_tell(tenant_start(c.node, c.slices[i], "linked",
				    "GPU_CORE_UTILIZATION_POLICY=force", NULL),
			"primary %u\ncompute far 0 bytes=2m streams=2", i);
	}
	settle();
	for (unsigned i = 0; i < 2; i++)
		busy_ns[i] = meter_busy_ns(c.slices[i], (int)i);
	usleep(WINDOW_US);
	for (unsigned i = 0; i < 2; i++) {
		unsigned permille =
			(unsigned)((meter_busy_ns(c.slices[i], (int)i) - busy_ns[i]) / (WINDOW_US));

		print_message("%s: %u permille\n", c.slices[i]->name, permille);
		assert_in_range(permille, 400, 500 + TOLERANCE);
	}
}

/* The machine's share promises nobody anything, whatever a tenant writes into one of its own. */
static void nobody_takes_more_by_asking_for_it(void **state)
{
	struct couple c = couple_of(state);

	if (!node_can_have_system_share()) {
		print_message("skipped: no right to mount an /etc of its own here\n");
		skip();
	}
	c.node->system_share = "vgpu-share 1\ndevice * memory unlimited\nend\n";
	join(&c, "cap 95", "compute launch 500");
	join(&c, "cores 95 cap 100 weight 10000", "compute launch 500");
	settle();
	measure(&c, WINDOW_US);
	c.node->system_share = NULL;
	assert_in_range(c.permille[0], 450, 500 + LOST);
	assert_in_range(c.permille[1], 450, 500 + LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(two_halves_are_halves),
		test_with_node(nobody_takes_more_by_asking_for_it),
		test_with_node(each_gets_its_own_share_beside_the_other),
		test_with_node(three_get_their_shares_however_they_work),
		test_with_node(what_nobody_uses_is_lent),
		test_with_node(who_was_lent_time_has_its_share_when_another_comes),
		test_with_node(who_was_left_alone_has_its_share_when_another_comes),
		test_with_node(long_kernels_that_were_queued_while_alone_cost_no_turns),
		test_with_node(nor_do_they_where_the_larger_slice_had_queued_them),
		test_with_node(the_first_long_kernels_beside_another_slice_cost_no_turns),
		test_with_node(kernels_of_100_ms_keep_the_shares_of_two_that_lend),
		test_with_node(kernels_of_300_ms_keep_the_shares_of_two),
		test_with_node(and_of_two_that_lend),
		test_with_node(and_beside_short_ones),
		test_with_node(who_queues_seconds_of_work_while_alone_pays_for_it),
		test_with_node(who_is_killed_with_the_turn_holds_nobody_up),
		test_with_node(who_is_stopped_with_the_turn_holds_nobody_up),
		test_with_node(two_processes_of_a_slice_share_its_turns),
		test_with_node(who_is_killed_with_the_piece_that_nobody_knows_holds_nobody_up),
		test_with_node(nor_for_longer_than_a_second_who_is_stopped),
		test_with_node(many_processes_that_begin_beside_another_slice_are_not_held_up),
		test_with_node(nor_are_they_where_they_go_on_with_something_else),
		test_with_node(who_goes_first_is_not_held_up_by_who_goes_later),
		test_with_node(whose_graphs_need_the_turns_of_two_devices_share_them),
		test_with_node(who_waits_for_each_step_has_its_share_beside_who_queues),
	};

	return cmocka_run_group_tests_name("compute_turns", tests, NULL, NULL);
}
