/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu suspend and vgpu resume without a driver: the share's line, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

#define UUID "GPU-00000000-1111-2222-3333-444444444444"

/* The slice "one", of which this process is. */
struct slice {
	struct region region;
	char path[512];
	unsigned slot, device;
};

static void make(struct slice *s)
{
	tool_run("mkdir \"$VGPU_STATE/one\"; cd \"$VGPU_STATE/one\"; : >lock; "
		 "printf 'vgpu-share 1\\nslice one\\nregion %%s/region\\n"
		 "device * memory 1g cores 30\\nend\\n' \"$PWD\" >share");
	snprintf(s->path, sizeof(s->path), "%s", tool_path("state/one/region"));
	assert_int_equal(region_open(s->path, &s->region), 0);
	assert_int_equal(slot_claim(&s->region, &s->slot), 0);
	assert_int_equal(region_device(&s->region, UUID, &s->device), 0);
}

static void drop(struct slice *s)
{
	region_close(&s->region);
	tool_run("rm -r \"$VGPU_STATE/one\"");
}

static bool is_suspended(void)
{
	return tool_run("grep -qx suspended \"$VGPU_STATE/one/share\"")->status == 0;
}

static void do_it(const char *command)
{
	const struct said *said = tool_run("timeout 20 \"$VGPU\" %s", command);

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "");
	assert_int_equal(said->status, 0);
}

static void a_call_that_makes_no_sense_says_what_would(void **state)
{
	static const struct {
		const char *arguments, *advice;
	} calls[] = {
		{"suspend", "suspend needs a slice"},
		{"resume", "resume needs a slice"},
		{"suspend one two", "not 'two' too"},
		{"resume one --evict", "no option --evict"},
		{"suspend one --evict=now", "takes no value"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct said *said = tool_run("\"$VGPU\" %s", calls[i].arguments);

		assert_int_equal(said->status, 2);
		assert_says(said->err, calls[i].advice);
	}
	assert_int_equal(tool_run("\"$VGPU\" suspend nobody")->status, 1);
	assert_says(tool_run("\"$VGPU\" resume nobody")->err, "there is no slice 'nobody'");
}

static void the_line_comes_and_goes_and_nothing_else_changes(void **state)
{
	struct slice s;

	make(&s);
	tool_run("cp \"$VGPU_STATE/one/share\" \"$HERE/before\"");
	do_it("suspend one");
	assert_true(is_suspended());
	do_it("suspend one");
	assert_true(is_suspended());
	do_it("resume one");
	assert_false(is_suspended());
	do_it("resume one");
	assert_string_equal(tool_run("grep -v memory \"$HERE/before\" >\"$HERE/a\"; "
				     "grep -v memory \"$VGPU_STATE/one/share\" | "
				     "diff \"$HERE/a\" -; grep memory \"$VGPU_STATE/one/share\"")
				    ->out,
		"device * memory 1073741824 cores 30\n");
	drop(&s);
}

static void a_suspended_slice_that_is_set_stays_suspended(void **state)
{
	struct slice s;

	make(&s);
	do_it("suspend one");
	assert_int_equal(tool_run("\"$VGPU\" set one --cores 40")->status, 0);
	assert_true(is_suspended());
	drop(&s);
}

static void of_sets_and_suspensions_at_once_none_is_lost(void **state)
{
	struct slice s;

	make(&s);
	for (int i = 1; i <= 5; i++) {
		const struct said *said = tool_run(
			"\"$VGPU\" set one --cores %d >/dev/null & \"$VGPU\" suspend one & "
			"\"$VGPU\" set one --memory %dg >/dev/null & wait; cat "
			"\"$VGPU_STATE/one/share\"",
			i, i);
		char expected[64];

		snprintf(expected, sizeof(expected), " memory %llu cores %d\n",
			(unsigned long long)i << 30, i);
		assert_string_equal(said->err, "");
		assert_says(said->out, expected);
		assert_true(is_suspended());
		do_it("resume one");
	}
	drop(&s);
}

static void who_holds_nothing_is_evicted_without_a_driver(void **state)
{
	struct slice s;

	make(&s);
	do_it("suspend one --evict");
	assert_true(is_suspended());
	do_it("resume one");
	drop(&s);
}

static void without_a_driver_it_stays_suspended_with_its_memory(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s);
	ledger_charge_anyway(s.region.file, s.slot, s.device, 16);
	said = tool_run("timeout 20 \"$VGPU\" suspend one --evict");
	if (strstr(said->err, "process ")) {
		/* a machine with a driver, which knows nothing of this process */
		drop(&s);
		skip();
	}
	assert_int_equal(said->status, 1);
	assert_says(said->err, "slice 'one' is suspended, but its memory stays where it is: ");
	assert_true(is_suspended());
	assert_int_equal(ledger_used_units(s.region.file, s.device), 16);
	assert_int_equal(tool_run("ls \"$VGPU_STATE/one/evicted\" 2>&1")->status == 0, 0);
	do_it("resume one");
	assert_false(is_suspended());
	drop(&s);
}

static void a_driver_without_checkpoints_is_told(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s);
	ledger_charge_anyway(s.region.file, s.slot, s.device, 16);
	/* any library is a driver that lacks them */
	said = tool_run("mkdir -p \"$HERE/sim\"; for l in libcuda.so.1 libnvidia-ml.so.1; do "
			"cp \"$VGPU_LIBDIR/libvgpu.so\" \"$HERE/sim/$l\"; done; "
			"VGPU_LIBDIR=\"$HERE\" \"$VGPU\" suspend one --evict --sim");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "version 570 or later is right");
	assert_true(is_suspended());
	assert_int_equal(ledger_used_units(s.region.file, s.device), 16);
	drop(&s);
}

/* Its slot is locked, and not of what has that number now: which process is meant nobody can tell, and its memory stays. */
static void one_that_seems_to_have_ended_and_lives_is_told(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s);
	ledger_charge_anyway(s.region.file, s.slot, s.device, 16);
	atomic_fetch_add(&s.region.file->own.slots[s.slot].start_time, 1);
	said = tool_run("timeout 20 \"$VGPU\" suspend one --evict");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "slice 'one' is suspended, but its memory stays where it is: ");
	assert_says(said->err, "is not of the process that has this number now");
	assert_true(is_suspended());
	assert_int_equal(ledger_used_units(s.region.file, s.device), 16);
	do_it("resume one");
	drop(&s);
}

static void whoever_changes_the_slice_just_now_is_waited_for(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s);
	/* somebody who holds the lock of changes for a moment is waited for */
	said = tool_run(": >\"$HERE/held\"; python3 -c '\n"
			"import fcntl, os, struct, sys, time\n"
			"fd = os.open(os.environ[\"VGPU_STATE\"] + \"/one/lock\", os.O_RDWR)\n"
			"fcntl.fcntl(fd, 37, struct.pack(\"hhqqi4x\", fcntl.F_WRLCK, 0, 1, 1, 0))\n"
			"print(\"held\", flush=True)\n"
			"time.sleep(0.3)' >\"$HERE/held\" & "
			"until grep -q held \"$HERE/held\"; do :; done; "
			"\"$VGPU\" suspend one; echo $?; wait");
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n");
	assert_true(is_suspended());
	drop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_makes_no_sense_says_what_would),
		cmocka_unit_test(the_line_comes_and_goes_and_nothing_else_changes),
		cmocka_unit_test(a_suspended_slice_that_is_set_stays_suspended),
		cmocka_unit_test(of_sets_and_suspensions_at_once_none_is_lost),
		cmocka_unit_test(who_holds_nothing_is_evicted_without_a_driver),
		cmocka_unit_test(without_a_driver_it_stays_suspended_with_its_memory),
		cmocka_unit_test(one_that_seems_to_have_ended_and_lives_is_told),
		cmocka_unit_test(a_driver_without_checkpoints_is_told),
		cmocka_unit_test(whoever_changes_the_slice_just_now_is_waited_for),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
