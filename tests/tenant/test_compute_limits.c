/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice with a compute limit gets it, whatever its programs do: by the simulated device's own count of how
 * long it served them. Cases run some at a time, each on a machine of its own.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "region/layout.h"
#include "region/snapshot.h"
#include "tests/tenant/meter.h"

#define AT_ONCE	   6
#define LIMIT	   "CUDA_DEVICE_SM_LIMIT=30"
#define FORCE	   "GPU_CORE_UTILIZATION_POLICY=force"
#define BLOCKING   "CUDA_LAUNCH_BLOCKING=1"
#define STOPPED_US 50000
#define TOLERANCE  3 /* tenths of a percent; the clock is virtual (tests/clock) */

struct work {
	const char *what;
	const char *door;    /* NULL: linked */
	const char *work;    /* of each tenant */
	const char *terms;   /* of the share, or NULL: the environment's limit of 30 % */
	const char *board;   /* or NULL */
	const char *setting; /* NAME=VALUE, or NULL */
	unsigned tenants;    /* 0: one */
	unsigned permille;   /* 0: 300 */
	unsigned slack;	     /* beyond the tolerance */
	int device;
};

struct place {
	struct node *node;
	struct slice *slice;
	uint64_t from_ns, busy_ns;
};

static void start(struct place *p, const struct work *w)
{
	void *node;

	assert_int_equal(node_setup(&node), 0);
	p->node = node;
	if (w->board)
		meter_use_board(node, w->board);
	p->slice = meter_slice(node, "a", "", w->terms);
	for (unsigned i = 0; i < (w->tenants ? w->tenants : 1); i++) {
		struct tenant *t = tenant_start(node, p->slice, w->door ? w->door : "linked",
			w->terms ? FORCE : LIMIT, FORCE, w->setting, NULL);

		tenant_tell(t, "primary %d", w->device);
		tenant_tell(t, "%s", w->work);
	}
}

static bool is_right(const struct place *p, const struct work *w)
{
	uint64_t busy_ns = meter_busy_ns(p->slice, w->device) - p->busy_ns;
	unsigned got = (unsigned)(busy_ns * 1000 / (machine_now_ns() - p->from_ns));
	unsigned want = w->permille ? w->permille : 300, tolerance = TOLERANCE + w->slack;

	print_message("%s: %u of %u permille\n", w->what, got, want);
	return got + tolerance >= want && got <= want + tolerance;
}

static void try_some(const struct work *works, size_t count)
{
	struct place places[AT_ONCE];
	bool are_right = true;

	for (size_t i = 0; i < count; i++)
		start(&places[i], &works[i]);
	usleep(METER_SETTLE_US);
	for (size_t i = 0; i < count; i++) {
		places[i].from_ns = machine_now_ns();
		places[i].busy_ns = meter_busy_ns(places[i].slice, works[i].device);
	}
	usleep(METER_WINDOW_US);
	for (size_t i = 0; i < count; i++)
		are_right &= is_right(&places[i], &works[i]);
	for (size_t i = 0; i < count; i++) {
		void *node = places[i].node;

		assert_int_equal(node_teardown(&node), 0);
	}
	assert_true(are_right);
}

static void try_all(const struct work *works, size_t count)
{
	for (size_t i = 0; i < count; i += AT_ONCE)
		try_some(works + i, count - i < AT_ONCE ? count - i : AT_ONCE);
}
#define TRY_ALL(works) try_all(works, ARRAY_SIZE(works))

static void every_form_of_work_gets_its_limit(void **state)
{
	static const struct work works[] = {
		{.what = "kernels of 0.2 ms", .work = "compute launch 200"},
		{.what = "kernels of 5 ms", .work = "compute launch 5000"},
		{.what = "graphs", .work = "compute graph 100"},
		{.what = "cuLaunchKernelEx", .work = "compute ex 500"},
		{.what = "cooperative", .work = "compute coop 500"},
		{.what = "as in CUDA 2", .work = "compute old 500"},
		{.what = "the thread's own stream",
			.door = "linked-thread",
			.work = "compute launch 500"},
		{.what = "fills", .work = "compute fill 0 bytes=1m", .board = METER_SLOW_BOARD},
		{.what = "copies", .work = "compute copy 0 bytes=1m", .board = METER_SLOW_BOARD},
	};

	TRY_ALL(works);
}

static void every_habit_of_a_program_gets_its_limit(void **state)
{
	static const struct work works[] = {
		{.what = "launch and synchronize", .work = "compute launch 1000 sync"},
		{.what = "short ones, each waited for", .work = "compute launch 50 sync"},
		{.what = "cuStreamQuery loops", .work = "compute launch 2000 poll"},
		{.what = "cuEventQuery loops", .work = "compute launch 2000 event"},
		{.what = "forks meanwhile",
			.work = "compute launch 200 streams=4 fork",
			.slack = 5},
		/* what threads give last before they stand still is charged as estimated */
		{.what = "a thread forks",
			.work = "compute launch 200 streams=4 threads=4 fork",
			.slack = 40},
		{.what = "asks for little more", .work = "compute launch 4000 idle"},
		{.what = "launches that block, one after the other",
			.work = "compute launch 5000 streams=1",
			.setting = BLOCKING},
		{.what = "short launches that block",
			.work = "compute launch 500",
			.setting = BLOCKING},
		{.what = "launches that block, with pauses",
			.work = "compute launch 4000 idle",
			.setting = BLOCKING},
		{.what = "streams destroyed at work", .work = "compute destroy 1000"},
		{.what = "contexts made anew", .work = "compute context 1000"},
	};

	TRY_ALL(works);
}

static void all_of_a_slice_has_one_limit(void **state)
{
	static const struct work works[] = {
		{.what = "four streams", .work = "compute launch 1000 streams=4"},
		/*
		 * A window of 1.5 s begins and ends anywhere in a filling of 4 ms, and with up to four pieces of 1 ms under
		 * way: 8 ms are 5 permille of it.
		 */
		{.what = "four threads",
			.work = "compute launch 1000 threads=4 streams=4",
			.slack = 5},
		{.what = "four threads on their own streams",
			.door = "linked-thread",
			.work = "compute launch 1000 threads=4",
			.slack = 5},
		/* between whose work the device changes over */
		{.what = "four processes",
			.work = "compute launch 1000",
			.tenants = 4,
			.slack = 10},
		{.what = "four processes of long kernels",
			.work = "compute launch 5000",
			.tenants = 4,
			.slack = 15},
		{.what = "four threads that wait",
			.work = "compute launch 1000 threads=4 streams=4 sync",
			.slack = 5},
	};

	TRY_ALL(works);
}

/* How long each of eight streams' work takes by itself, and all of it in a slice with such a limit. */
static void expect_overlap(struct node *node, unsigned percent, unsigned most_ms)
{
	char name[8], terms[16];
	struct tenant *t;
	uint64_t begun_ns, took_ms;

	snprintf(name, sizeof(name), "of%u", percent);
	snprintf(terms, sizeof(terms), "cores %u", percent);
	t = tenant_start(node, meter_slice(node, name, "", terms), "linked", FORCE, NULL);
	expect(t, OK, "primary 0");
	begun_ns = machine_now_ns();
	expect(t, OK, "compute launch 100 threads=8 streams=8 count=4000");
	took_ms = (machine_now_ns() - begun_ns) / 1000000;
	print_message(
		"%u %%: 400 ms of eight streams took %llu\n", percent, (unsigned long long)took_ms);
	assert_in_range(took_ms, 39800 / percent, most_ms);
}

/* Those of one slice after the other: 444 and 800 ms, and some for where one has none of its work beside the others'. */
static void streams_work_beside_each_other_under_a_limit(void **state)
{
	expect_overlap(*state, 90, 520);
	expect_overlap(*state, 50, 930);
}

static void a_limit_of_the_share_file_holds(void **state)
{
	static const struct work works[] = {
		{.what = "cores 30", .terms = "cores 30", .work = "compute launch 500"},
		{.what = "cores 30 cap 50",
			.terms = "cores 30 cap 50",
			.permille = 500,
			.work = "compute launch 500"},
		{.what = "cores 12.5",
			.terms = "cores 12.5",
			.permille = 125,
			.work = "compute launch 500"},
		{.what = "cores 90",
			.terms = "cores 90",
			.permille = 900,
			.work = "compute launch 500"},
		{.what = "cores 30 on the second card",
			.terms = "cores 30",
			.device = 1,
			.work = "compute launch 500"},
	};

	TRY_ALL(works);
}

static void a_limit_holds_where_memory_is_counted_and_has_no_quota(void **state)
{
	struct slice *a = slice_new(*state, "a", "unlimited", "unlimited");
	struct tenant *t;
	char text[400];

	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\ndevice * memory unlimited cores 30\nend\n",
		a->region);
	slice_write(a, text);
	t = tenant_start(*state, a, "linked", FORCE, NULL);
	expect(t, OK, "primary 0");
	expect(t, OK, "fill 1g 100");
	assert_in_range(slice_agreed(a, 0), 100 * GIB, 101 * GIB);
	tenant_tell(t, "compute launch 500");
	usleep(METER_SETTLE_US);
	assert_in_range(meter_permille(a, 0, METER_WINDOW_US), 300 - TOLERANCE, 300 + TOLERANCE);
	assert_in_range(slice_books(a, 0), 100 * GIB, 101 * GIB);
	assert_int_equal(atomic_load(&meter_region(a)->own.devices[0].refusal_count), 0);
}

static void each_card_has_its_own_limit_by_index(void **state)
{
	struct node *node = *state;
	struct slice *a = meter_slice(node, "a", "", NULL), *b = meter_slice(node, "b", "", NULL);
	struct tenant *first = tenant_start(node, a, "linked", "CUDA_DEVICE_SM_LIMIT_0=30",
		"CUDA_DEVICE_SM_LIMIT_1=60", FORCE, NULL);
	struct tenant *second = tenant_start(node, b, "linked", "CUDA_DEVICE_SM_LIMIT_0=30",
		"CUDA_DEVICE_SM_LIMIT_1=60", FORCE, NULL);
	uint64_t from_ns, busy_ns[2];
	unsigned got[2];

	tenant_tell(first, "primary 0\ncompute launch 500");
	tenant_tell(second, "primary 1\ncompute launch 500");
	usleep(METER_SETTLE_US);
	from_ns = machine_now_ns();
	busy_ns[0] = meter_busy_ns(a, 0);
	busy_ns[1] = meter_busy_ns(b, 1);
	usleep(METER_WINDOW_US);
	got[0] = (unsigned)((meter_busy_ns(a, 0) - busy_ns[0]) * 1000 /
			    (machine_now_ns() - from_ns));
	got[1] = (unsigned)((meter_busy_ns(b, 1) - busy_ns[1]) * 1000 /
			    (machine_now_ns() - from_ns));
	assert_in_range(got[0], 300 - TOLERANCE, 300 + TOLERANCE);
	assert_in_range(got[1], 600 - TOLERANCE, 600 + TOLERANCE);
}

/* How long the device works for the slice in the time after the tenant is told so. */
static uint64_t busy_in(struct slice *slice, struct tenant *t, const char *work, unsigned window_us)
{
	uint64_t begun_ns = machine_now_ns(), busy_ns = meter_busy_ns(slice, 0);

	tenant_tell(t, "%s", work);
	usleep(window_us);
	busy_ns = meter_busy_ns(slice, 0) - busy_ns;
	print_message("%llu ms of %llu\n", (unsigned long long)(busy_ns / 1000000),
		(unsigned long long)((machine_now_ns() - begun_ns) / 1000000));
	return busy_ns;
}

/* What took nothing a thousand times takes 5 ms from now on; what was given by the wrong estimate is paid. */
static void work_that_turns_long_is_not_taken_for_short(void **state)
{
	struct slice *a = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_start(*state, a, "linked", FORCE, NULL);
	uint64_t busy_ns;

	expect(t, OK, "primary 0");
	expect(t, OK, "compute launch 0 count=20000");
	busy_ns = busy_in(a, t, "compute launch 5000", 3000000);
	assert_in_range(busy_ns, 895000000, 905000000);
}

/*
 * Five of an estimate of 1 ms would be given before the first is seen to take 50 ms; and the second, which waits for that, is
 * known to take as long.
 */
static void what_nobody_knows_goes_one_by_one(void **state)
{
	struct slice *a = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_start(*state, a, "linked", FORCE, NULL);
	uint64_t busy_ns;

	expect(t, OK, "primary 0");
	busy_ns = meter_busy_ns(a, 0);
	tenant_tell(t, "compute launch 50000 streams=1");
	for (unsigned i = 0; meter_busy_ns(a, 0) == busy_ns && i < 5000; i++)
		usleep(1000);
	usleep(250000);
	busy_ns = meter_busy_ns(a, 0) - busy_ns;
	print_message("%llu ms of 250\n", (unsigned long long)(busy_ns / 1000000));
	assert_in_range(busy_ns, 95000000, 105000000);
}

/*
 * Short kernels, and before each pause a long one of the same function that nobody waits for: it is found out
 * by chance, and from then on measured.
 */
static void work_that_hides_before_pauses_is_found_out(void **state)
{
	struct slice *a = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_start(*state, a, "linked", FORCE, NULL);
	uint64_t busy_ns;

	expect(t, OK, "primary 0");
	busy_ns = busy_in(a, t, "compute launch 20 streams=1 hide", 6000000);
	/*
	 * 30 % are 1.8 s, and all of the device 6 s. All that follows the slice's first pause is measured, so what it hides is found out then, and
	 * for longer than this all of it is measured.
	 */
	print_message("%llu ms of 6000\n", (unsigned long long)(busy_ns / 1000000));
	assert_in_range(busy_ns, 1000000000, 2300000000);
}

/* Where its work is on the host's clock is not to be seen later than it was, or spans would overlap. */
static void who_is_stopped_beside_an_event_keeps_its_limit(void **state)
{
	struct slice *a = meter_slice(*state, "a", "", "cores 50");

	for (unsigned n = 1; n < 4; n++) {
		char fault[64];
		struct tenant *t;
		unsigned permille;

		snprintf(fault, sizeof(fault), "VGPU_FAULT=stop %u stream: start recorded", n);
		t = tenant_start(*state, a, "linked", FORCE, fault, NULL);
		expect(t, OK, "primary 0");
		tenant_tell(t, "compute launch 500");
		assert_true(tenant_stops(t));
		usleep(STOPPED_US);
		tenant_kill(t, SIGCONT);
		usleep(METER_SETTLE_US);
		permille = meter_permille(a, 0, METER_WINDOW_US);
		print_message("%u: %u permille\n", n, permille);
		assert_in_range(permille, 500 - TOLERANCE, 500 + TOLERANCE);
		tenant_kill(t, SIGKILL);
	}
}

/* Books for our own memory that fail are no way to work without a limit. */
static void a_limit_holds_after_a_failure_of_our_own(void **state)
{
	struct node *node = *state;
	struct slice *a = meter_slice(node, "a", "", "cores 30");
	struct tenant *t;
	uint64_t busy_ns;

	node->is_loud = true;
	t = tenant_start(node, a, "linked", FORCE, "VGPU_FAULT=fail 3 meter: batch open", NULL);
	expect(t, OK, "primary 0");
	busy_ns = busy_in(a, t, "compute launch 1000", 3000000);
	assert_in_range(busy_ns, 880000000, 920000000);
}

static uint64_t shown_ns(const struct slice *slice)
{
	_cleanup_free_ struct snapshot *snapshot = malloc(sizeof(*snapshot));

	assert_non_null(snapshot);
	assert_int_equal(snapshot_read(slice->region, snapshot), 0);
	return snapshot->devices[0].compute.busy_ns;
}

/* Its own process waits for it, and charges nothing meanwhile; and one that gives more work does. */
static void work_that_does_not_end_is_shown_and_charged_while_it_runs(void **state)
{
	struct node *node = *state;
	struct slice *a = meter_slice(node, "a", "", "cores 30"),
		     *b = meter_slice(node, "b", "", "cores 30");
	struct tenant *waits = tenant_start(node, a, "linked", FORCE, NULL);
	struct tenant *gives = tenant_start(node, b, "linked", FORCE, NULL);

	expect(waits, OK, "primary 0");
	expect(gives, OK, "primary 1");
	tenant_tell(waits, "compute launch 5000000 count=1");
	tenant_tell(gives, "compute launch 5000000 streams=1 count=20");
	usleep(2000000);
	assert_in_range(shown_ns(a), 1700000000, 2100000000);
	assert_in_range(shown_ns(b), 1700000000, 2100000000);
	assert_in_range(meter_region(b)->own.compute[0].busy_ns, 1800000000, 2100000000);
	assert_int_equal(tenant_answer(waits), OK);
	assert_in_range(shown_ns(a), 4900000000, 5100000000);
}

/* 300 s at 30 % are paid after 700 s more; one word of steps of 64 ns would have forgiven a third of that. */
static void work_of_minutes_is_paid_in_full(void **state)
{
	struct slice *a = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_start(*state, a, "linked", FORCE, NULL);
	uint64_t busy_ns;

	expect(t, OK, "primary 0");
	tenant_tell(t, "compute launch 300000000 count=1");
	usleep(299000000);
	assert_int_equal(tenant_answer(t), OK);
	busy_ns = meter_busy_ns(a, 0);
	assert_in_range(busy_ns, 299000000000, 301000000000);
	tenant_tell(t, "compute launch 1000 count=1");
	usleep(695000000);
	assert_int_equal(meter_busy_ns(a, 0), busy_ns);
	usleep(10000000);
	assert_int_equal(tenant_answer(t), OK);
	assert_in_range(meter_busy_ns(a, 0) - busy_ns, 990000, 1010000);
}

/* Launched on streams of a device that has no limit. */
static void fills_of_another_device_in_graphs_count(void **state)
{
	struct slice *a;
	struct tenant *t;

	meter_use_board(*state, METER_SLOW_BOARD);
	a = meter_slice(*state, "a", "", NULL);
	t = tenant_start(*state, a, "linked", "CUDA_DEVICE_SM_LIMIT_0=30", FORCE, NULL);
	tenant_tell(t, "primary 0\ncompute far 0 bytes=1m");
	usleep(METER_SETTLE_US);
	assert_in_range(meter_permille(a, 0, METER_WINDOW_US), 300 - TOLERANCE, 300 + TOLERANCE);
}

/* 10 times 2 ms on each, as without a limit. */
static void a_graph_works_on_several_devices(void **state)
{
	static const char *const limits[] = {"cap 100", "cores 30"}, *const names[] = {"a", "b"};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct slice *a = meter_slice(*state, names[i], "", limits[i]);
		struct tenant *t = tenant_start(*state, a, "linked", FORCE, NULL);

		expect(t, OK, "init");
		expect(t, OK, "newctx second 1");
		expect(t, OK, "newctx first 0");
		expect(t, OK, "graph g");
		expect(t, OK, "gspin g 1 2000");
		expect(t, OK, "use second");
		expect(t, OK, "gspin g 1 2000");
		expect(t, OK, "use first");
		expect(t, OK, "instantiate e g");
		expect(t, OK, "stream s");
		expect(t, OK, "glaunch e s 10");
		expect(t, OK, "sync");
		assert_in_range(meter_busy_ns(a, 1), 19900000, 20100000);
		assert_int_equal(tenant_end(t), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_work_gets_its_limit),
		cmocka_unit_test(every_habit_of_a_program_gets_its_limit),
		cmocka_unit_test(all_of_a_slice_has_one_limit),
		test_with_node(streams_work_beside_each_other_under_a_limit),
		cmocka_unit_test(a_limit_of_the_share_file_holds),
		test_with_node(a_limit_holds_where_memory_is_counted_and_has_no_quota),
		test_with_node(each_card_has_its_own_limit_by_index),
		test_with_node(work_that_turns_long_is_not_taken_for_short),
		test_with_node(what_nobody_knows_goes_one_by_one),
		test_with_node(work_that_hides_before_pauses_is_found_out),
		test_with_node(who_is_stopped_beside_an_event_keeps_its_limit),
		test_with_node(a_limit_holds_after_a_failure_of_our_own),
		test_with_node(work_that_does_not_end_is_shown_and_charged_while_it_runs),
		test_with_node(work_of_minutes_is_paid_in_full),
		test_with_node(fills_of_another_device_in_graphs_count),
		test_with_node(a_graph_works_on_several_devices),
	};

	return cmocka_run_group_tests_name("compute_limits", tests, NULL, NULL);
}
