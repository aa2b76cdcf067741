/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as it is built, on the clock of the machine: that limits hold there, too, with the counter of the
 * processor and timers that are late. How exact they are is for the tests on a virtual clock; here other processes
 * may take the processors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/tenant/meter.h"

#define TOLERANCE 120 /* tenths of a percent */
#define TRIES	  5   /* a window in which others had the processors says nothing */

struct row {
	const char *terms, *work;
	unsigned permille;
	struct node *node;
	struct slice *slice;
	uint64_t from_ns, busy_ns;
};

static void begin(struct row *row)
{
	void *node;

	assert_int_equal(node_setup(&node), 0);
	row->node = node;
	row->slice = meter_slice(node, "a", "", row->terms);
	assert_int_equal(tenant_answer(meter_start(row->slice, "linked", 0, NULL, row->work)), OK);
}

static bool is_right(unsigned got, unsigned permille)
{
	return got >= permille - TOLERANCE && got <= permille + TOLERANCE;
}

static void assert_gets(struct slice *slice, unsigned permille, unsigned window_us)
{
	unsigned got = 0;

	for (unsigned i = 0; i < TRIES && !is_right(got, permille); i++)
		got = meter_permille(slice, 0, window_us);
	assert_in_range(got, permille - TOLERANCE, permille + TOLERANCE);
}

static bool have_right_window(struct row *rows, unsigned count)
{
	bool are_right = true;

	for (unsigned i = 0; i < count; i++) {
		rows[i].from_ns = machine_now_ns();
		rows[i].busy_ns = meter_busy_ns(rows[i].slice, 0);
	}
	usleep(METER_WINDOW_US);
	for (unsigned i = 0; i < count; i++) {
		uint64_t busy_ns = meter_busy_ns(rows[i].slice, 0) - rows[i].busy_ns;
		unsigned got = (unsigned)(busy_ns * 1000 / (machine_now_ns() - rows[i].from_ns));

		print_message("%s, %s: %u permille\n", rows[i].terms, rows[i].work, got);
		are_right = are_right && is_right(got, rows[i].permille);
	}
	return are_right;
}

static void limits_hold(void **state)
{
	struct row rows[] = {
		{.terms = "cores 30", .permille = 300, .work = "compute launch 500"},
		{.terms = "cores 60", .permille = 600, .work = "compute graph 100"},
		{.terms = "cores 30", .permille = 300, .work = "compute launch 2000 sync"},
	};
	bool are_right = false;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		begin(&rows[i]);
	usleep(METER_SETTLE_US);
	for (unsigned i = 0; i < TRIES && !are_right; i++)
		are_right = have_right_window(rows, ARRAY_SIZE(rows));
	assert_true(are_right);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		void *node = rows[i].node;

		assert_int_equal(node_teardown(&node), 0);
	}
}

static void slices_take_turns(void **state)
{
	struct node *node = *state;
	struct slice *slices[2];
	char lines[200];

	snprintf(lines, sizeof(lines), "turns %s/turns\n", node->dir);
	for (unsigned i = 0; i < 2; i++) {
		slices[i] = meter_slice(node, i ? "b" : "a", lines, "cores 50");
		assert_int_equal(tenant_answer(meter_start(
					 slices[i], "linked", 0, NULL, "compute launch 500")),
			OK);
	}
	usleep(2 * METER_SETTLE_US);
	assert_gets(slices[0], 500, METER_WINDOW_US);
}

static void what_changes_holds_soon(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 20");

	assert_int_equal(
		tenant_answer(meter_start(slice, "linked", 0, NULL, "compute launch 500")), OK);
	usleep(METER_SETTLE_US);
	meter_change(slice, "", "cores 70");
	usleep(METER_SETTLE_US);
	assert_gets(slice, 700, METER_WINDOW_US / 2);
}

/* The slice is a folder, as vgpu run makes it, and its share file is vgpu's to change. */
static struct slice *slice_of_vgpu(struct node *node)
{
	struct slice *slice = meter_slice(node, "a", "", "cores 50");
	char folder[160];

	snprintf(folder, sizeof(folder), "%s/slices", node->dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	setenv("VGPU_STATE", folder, 1);
	snprintf(folder, sizeof(folder), "%s/slices/a", node->dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(slice->share, sizeof(slice->share), "%s/share", folder);
	snprintf(slice->region, sizeof(slice->region), "%s/region", folder);
	meter_change(slice, "", "cores 50");
	node_file(node, "slices/a/lock", "", 0);
	return slice;
}

static void tell_vgpu(const char *command)
{
	char whole[512];

	assert_non_null(getenv("TENANT_VGPU"));
	snprintf(whole, sizeof(whole), "timeout 60 '%s' %s a", getenv("TENANT_VGPU"), command);
	assert_int_equal(system(whole), 0);
}

/* Served for a tenth of a second more, within a time in which any machine comes to it. */
static void expect_to_go_on(const struct slice *slice)
{
	uint64_t busy_ns = meter_busy_ns(slice, 0);

	for (unsigned i = 0; i < 200 && meter_busy_ns(slice, 0) < busy_ns + 100000000; i++)
		usleep(50000);
	assert_true(meter_busy_ns(slice, 0) >= busy_ns + 100000000);
}

/* When nothing was served for a while; until then it takes as long as the machine is slow. */
static uint64_t busy_at_rest_ns(const struct slice *slice)
{
	uint64_t before_ns, busy_ns = 0;
	unsigned i = 0;

	do {
		before_ns = busy_ns;
		usleep(METER_SETTLE_US);
		busy_ns = meter_busy_ns(slice, 0);
	} while (busy_ns != before_ns && i++ < 30);
	return busy_ns;
}

static void a_slice_that_is_suspended_stands_still_and_goes_on(void **state)
{
	struct slice *slice = slice_of_vgpu(*state);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, "compute launch 500");
	uint64_t busy_ns;

	assert_int_equal(tenant_answer(t), OK);
	for (unsigned i = 0; i < 3; i++) {
		expect_to_go_on(slice);
		tell_vgpu("suspend");
		busy_ns = busy_at_rest_ns(slice);
		assert_true(busy_ns > 0);
		usleep(METER_WINDOW_US / 2);
		assert_int_equal(meter_busy_ns(slice, 0), busy_ns);
		tell_vgpu("resume");
	}
	expect_to_go_on(slice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_hold),
		test_with_node(slices_take_turns),
		test_with_node(what_changes_holds_soon),
		test_with_node(a_slice_that_is_suspended_stands_still_and_goes_on),
	};

	return cmocka_run_group_tests_name("real_clock", tests, NULL, NULL);
}
