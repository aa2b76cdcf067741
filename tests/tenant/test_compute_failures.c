/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the driver that the meter relies upon fails, at once or for good: work is metered by what is left, or by the
 * clock, and never goes free.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "region/layout.h"
#include "tests/tenant/meter.h"

#define UNKNOWN	  999
#define LIMIT	  300
#define TOLERANCE 10 /* in permille; the clock is virtual */
#define WINDOW_US 700000

/* What src/tenant/compute asks the driver. */
static const char *const calls[] = {
	"cuCtxGetCurrent",
	"cuCtxGetDevice",
	"cuCtxPushCurrent_v2",
	"cuCtxPopCurrent_v2",
	"cuStreamGetCtx",
	"cuStreamQuery",
	"cuStreamGetCaptureInfo",
	"cuStreamIsCapturing",
	"cuThreadExchangeStreamCaptureMode",
	"cuEventCreate",
	"cuEventRecord",
	"cuEventQuery",
	"cuEventElapsedTime",
};

static void fail_from_now(struct node *node, const char *symbol)
{
	struct inject_rule rule = {.tag = "a", .result = UNKNOWN};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
}

/* is_late: the call fails when all is known already. */
static bool is_limited(struct slice *slice, const char *symbol, const char *work, bool is_late)
{
	struct node *node = slice->node;
	struct tenant *t = tenant_start(node, slice, "linked", NULL);
	unsigned got;

	expect(t, OK, "primary 0");
	if (!is_late)
		fail_from_now(node, symbol);
	tenant_tell(t, "%s", work);
	usleep(METER_SETTLE_US);
	if (is_late)
		fail_from_now(node, symbol);
	usleep(METER_SETTLE_US);
	got = meter_permille(slice, 0, WINDOW_US);
	print_message("%s fails%s, %s: %u permille\n", symbol, is_late ? " later" : "", work, got);
	tenant_kill(t, SIGKILL);
	inject_clear_rules(node->machine);
	unlink(slice->region);
	return got <= LIMIT + TOLERANCE;
}

static void try_all(struct node *node, const char *work)
{
	struct slice *slice = meter_slice(node, "a", "", "cores 30");
	bool are_limited = true;

	node->is_loud = true;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		are_limited &= is_limited(slice, calls[i], work, true);
		are_limited &= is_limited(slice, calls[i], work, false);
	}
	assert_true(are_limited);
}

static void work_in_the_null_stream_is_limited_whatever_fails(void **state)
{
	try_all(*state, "compute launch 1000");
}

static void work_in_streams_is_limited_whatever_fails(void **state)
{
	try_all(*state, "compute launch 1000 streams=3");
}

static void graphs_are_limited_whatever_fails(void **state)
{
	try_all(*state, "compute graph 100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(work_in_the_null_stream_is_limited_whatever_fails),
		test_with_node(work_in_streams_is_limited_whatever_fails),
		test_with_node(graphs_are_limited_whatever_fails),
	};

	return cmocka_run_group_tests_name("compute_failures", tests, NULL, NULL);
}
