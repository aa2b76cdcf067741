/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to launch a kernel whose frames do not fit: it is refused before anything is taken. */
#include "tests/tenant/tenant.h"

#include <stdio.h>

/* Of the board that the tests use: frames of all threads, for each byte of a frame (H200). */
#define FRAME_BYTES(frame) ((UINT64_C(frame) * 2048 * 132 + 2 * MIB - 1) / (2 * MIB) * (2 * MIB))
#define LOCAL_BYTES(frame) (FRAME_BYTES(frame) - FRAME_BYTES(1024))

static void try_launch(struct tenant *t, struct slice *slice, const char *launch, const char *rest)
{
	uint64_t before = slice_agreed(slice, 0);

	print_message("%s%s\n", launch, rest);
	expect(t, OK, "module small frame=4096");
	expect(t, OK, "module big frame=65536");
	expect(t, OUT_OF_MEMORY, "%s big%s", launch, rest);
	expect(t, OUT_OF_MEMORY, "%s big%s", launch, rest);
	assert_int_equal(slice_agreed(slice, 0), before);
	expect(t, OK, "%s small%s", launch, rest);
	assert_int_equal(slice_agreed(slice, 0), before + LOCAL_BYTES(4096));
	expect(t, OK, "%s small%s", launch, rest);
	expect(t, OK, "sync");
	expect(t, OK, "limit stack 1024");
	assert_int_equal(slice_agreed(slice, 0), before);
	expect(t, OK, "unload small");
	expect(t, OK, "unload big");
}

static void frames_that_do_not_fit_are_refused_however_they_are_launched(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "stream s");
	/* What the stream took was not announced. */
	slice->slack_bytes = 64 * KIB;
	try_launch(t, slice, "launch", "");
	try_launch(t, slice, "launchex", "");
	try_launch(t, slice, "launchex", " s");
	try_launch(t, slice, "launchcoop", "");
	try_launch(t, slice, "launchcoop", " s");
	try_launch(t, slice, "launchmulti", " s");
	try_launch(t, slice, "launchold", " one");
	try_launch(t, slice, "launchold", " grid");
	try_launch(t, slice, "launchold", " async");
	assert_int_equal(tenant_end(t), 0);
}

static void and_on_the_stream_of_the_thread(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_start(slice->node, slice, "linked-thread", NULL);

	expect(t, OK, "primary 0");
	try_launch(t, slice, "launch", "");
	try_launch(t, slice, "launchex", "");
	try_launch(t, slice, "launchcoop", "");
	assert_int_equal(tenant_end(t), 0);
}

/* A stream that the driver does not know is for the driver to refuse. */
static void what_is_wrong_about_a_launch_is_the_drivers_to_say(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "module m");
	expect(t, 1, "launchmulti m");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(frames_that_do_not_fit_are_refused_however_they_are_launched),
		test_with_node(and_on_the_stream_of_the_thread),
		test_with_node(what_is_wrong_about_a_launch_is_the_drivers_to_say),
	};

	return cmocka_run_group_tests_name("launches", tests, NULL, NULL);
}
