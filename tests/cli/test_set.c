/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu set: what of a share file changes, what stays, and two who change it at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "policy/share.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

#define GIB (UINT64_C(1) << 30)
#define A   "GPU-aaaaaaaa-1111-2222-3333-444444444444"
#define B   "GPU-bbbbbbbb-1111-2222-3333-444444444444"

/* The slice "one", with these lines in its share, and nobody in it. */
static void make(const char *lines)
{
	tool_run("rm -rf \"$VGPU_STATE/one\"; mkdir \"$VGPU_STATE/one\"; cd \"$VGPU_STATE/one\"; "
		 ": >lock; printf 'vgpu-share 1\nslice one\nregion %%s/region\n' \"$PWD\" >share; "
		 "printf '%s' >>share; echo end >>share; chmod 444 share",
		lines);
}

/* A region with a process keeps the slice from being swept. */
struct keeper {
	struct region region;
	unsigned slot, device;
};

static void keep(struct keeper *k)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s", tool_path("state/one/region"));
	assert_int_equal(region_open(path, &k->region), 0);
	assert_int_equal(slot_claim(&k->region, &k->slot), 0);
	assert_int_equal(region_device(&k->region, A, &k->device), 0);
}

static void drop(struct keeper *k)
{
	region_close(&k->region);
	tool_run("rm -rf \"$VGPU_STATE/one\"");
}

static void read_share(struct share *ret_share)
{
	const struct said *said = tool_run("cat \"$VGPU_STATE/one/share\"");
	struct share_fault fault;

	assert_int_equal(share_parse(said->out, strlen(said->out), ret_share, &fault), 0);
}

static void set(const char *arguments, struct share *ret_share)
{
	const struct said *said = tool_run("\"$VGPU\" set one %s", arguments);

	assert_string_equal(said->err, "");
	assert_says(said->out, "slice one, in force");
	assert_int_equal(said->status, 0);
	read_share(ret_share);
}

static void a_call_that_makes_no_sense_says_what_would(void **state)
{
	static const struct {
		const char *arguments, *advice;
	} calls[] = {
		{"set", "set needs a slice"},
		{"set one", "something to change"},
		{"set one two --memory 1g", "not 'two' too"},
		{"set one --memory 10XB", "512m, 2.5g, 8GiB"},
		{"set one --memory 0", "a size like 2g"},
		{"set one --memory 10XB", "or unlimited"},
		{"set one --memory none", "or unlimited"},
		{"set one --cores 0", "0.1 to 100"},
		{"set one --cores 101", "0.1 to 100"},
		{"set one --cores 1e1", "0.1 to 100"},
		{"set one --cap nan", "0.1 to 100"},
		{"set one --weight 10001", "1 to 10000"},
		{"set one --priority -1", "0 to 9"},
		{"set one --device a --device b --cores 1", "one device is set at a time"},
		{"set one --colour", "no option --colour"},
		{"set --memory", "--memory needs a value"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct said *said = tool_run("\"$VGPU\" %s", calls[i].arguments);

		assert_int_equal(said->status, 2);
		assert_says(said->err, calls[i].advice);
		assert_ptr_equal(strchr(said->err, '\n'), said->err + strlen(said->err) - 1);
		assert_string_equal(said->out, "");
	}
}

static void what_is_named_changes_and_the_rest_stays(void **state)
{
	struct keeper k;
	struct share s;

	make("turns /t\\npriority 3\\nsuspended\\n"
	     "device " A " memory 2g cores 30 cap 50 weight 7\\ndevice " B " memory 1g\\n");
	keep(&k);
	set("--memory 4g", &s);
	assert_int_equal(s.devices[0].memory_bytes, 4 * GIB);
	assert_int_equal(s.devices[1].memory_bytes, 4 * GIB);
	assert_int_equal(s.devices[0].compute.cores_permille, 300);
	assert_int_equal(s.devices[0].compute.cap_permille, 500);
	assert_int_equal(s.devices[0].compute.weight, 7);
	assert_int_equal(s.devices[1].compute.cap_permille, 0);
	assert_int_equal(s.priority, 3);
	assert_true(s.is_suspended);
	assert_string_equal(s.turns, "/t");
	assert_string_equal(s.slice, "one");
	set("--device GPU-b --cores 10 --weight 9", &s);
	assert_int_equal(s.devices[0].compute.cores_permille, 300);
	assert_int_equal(s.devices[1].compute.cores_permille, 100);
	assert_int_equal(s.devices[1].compute.weight, 9);
	set("--priority 0", &s);
	assert_int_equal(s.priority, 0);
	assert_true(s.is_suspended);
	assert_string_equal(
		tool_run("stat -c %%a \"$VGPU_STATE/one/share\"; ls \"$VGPU_STATE/one\"")->out,
		"444\nlock\nregion\nshare\n");
	drop(&k);
}

static void a_hard_limit_stays_hard_and_a_soft_one_soft(void **state)
{
	const struct said *said;
	struct keeper k;
	struct share s;

	make("device " A " memory 2g cores 30\\n");
	keep(&k);
	set("--cores 40", &s);
	assert_int_equal(s.devices[0].compute.cap_permille, 400);
	set("--cap 60", &s);
	assert_int_equal(s.devices[0].compute.cores_permille, 400);
	assert_int_equal(s.devices[0].compute.cap_permille, 600);
	set("--cores 50", &s);
	assert_int_equal(s.devices[0].compute.cap_permille, 600);
	said = tool_run("\"$VGPU\" set one --cores 70");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "cores of 70% are above the cap of 60%");
	set("--cap none", &s);
	assert_int_equal(s.devices[0].compute.cap_permille, SHARE_WHOLE_PERMILLE);
	set("--cores none", &s);
	assert_int_equal(s.devices[0].compute.cores_permille, 0);
	assert_int_equal(s.devices[0].compute.cap_permille, 0);
	drop(&k);
}

/* The device plugin's slices are so: their containers see the folder. */
static void slices_without_a_lock_have_one_together(void **state)
{
	struct keeper k;
	struct share s;

	make("device " A " memory 2g cores 30\\n");
	keep(&k);
	tool_run("rm \"$VGPU_STATE/one/lock\"");
	set("--memory 1g", &s);
	assert_int_equal(s.devices[0].memory_bytes, GIB);
	set("--memory 3g", &s);
	assert_int_equal(s.devices[0].memory_bytes, 3 * GIB);
	assert_string_equal(
		tool_run("ls \"$VGPU_STATE/one\"; stat -c %%a \"$VGPU_STATE/.lock\"")->out,
		"region\nshare\n600\n");
	tool_run("rm \"$VGPU_STATE/.lock\"");
	drop(&k);
}

static void a_device_under_the_wildcard_gets_a_line_of_its_own(void **state)
{
	struct keeper k;
	struct share s;

	make("device * memory 2g cores 30\\n");
	keep(&k);
	set("--device \\* --memory 3g", &s);
	assert_int_equal(s.device_count, 1);
	assert_int_equal(s.devices[0].memory_bytes, 3 * GIB);
	drop(&k);
}

static void what_is_not_the_slices_is_refused_with_what_is(void **state)
{
	const struct said *said;
	struct keeper k;

	make("device " A " memory 2g\\ndevice " B " memory 2g\\n");
	keep(&k);
	said = tool_run("\"$VGPU\" set one --device GPU-c --memory 1g");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "'GPU-c'");
	said = tool_run("\"$VGPU\" set one --device GPU- --memory 1g");
	assert_int_equal(said->status, 1);
	said = tool_run("\"$VGPU\" set two --memory 1g");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "there is no slice 'two'");
	said = tool_run("\"$VGPU\" set ../one --memory 1g");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "there is no slice '../one'");
	drop(&k);
}

static void a_quota_below_what_is_held_is_set_and_noted(void **state)
{
	const struct said *said;
	struct keeper k;
	struct share s;

	make("device " A " memory 4g\\n");
	keep(&k);
	ledger_charge_anyway(k.region.file, k.slot, k.device, ledger_units(3 * GIB));
	said = tool_run("\"$VGPU\" set one --memory 2g");
	assert_int_equal(said->status, 0);
	assert_says(said->err, "note: slice 'one' holds 3G");
	read_share(&s);
	assert_int_equal(s.devices[0].memory_bytes, 2 * GIB);
	drop(&k);
}

static void a_quota_can_be_taken_away_and_given_again(void **state)
{
	struct keeper k;
	struct share s;

	make("device " A " memory 2g cores 30\\ndevice " B " memory 1g\\n");
	keep(&k);
	ledger_charge_anyway(k.region.file, k.slot, k.device, ledger_units(3 * GIB));
	set("--device GPU-a --memory unlimited", &s);
	assert_int_equal(s.devices[0].memory_bytes, SHARE_UNLIMITED);
	assert_int_equal(s.devices[0].compute.cores_permille, 300);
	assert_int_equal(s.devices[1].memory_bytes, GIB);
	set("--cores none", &s);
	assert_int_equal(s.devices[0].memory_bytes, SHARE_UNLIMITED);
	set("--memory unlimited --weight 5", &s);
	assert_int_equal(s.devices[1].memory_bytes, SHARE_UNLIMITED);
	assert_int_equal(s.devices[1].compute.weight, 5);
	set("--memory 4g", &s);
	assert_int_equal(s.devices[0].memory_bytes, 4 * GIB);
	drop(&k);
}

static void a_share_that_cannot_be_read_is_not_replaced(void **state)
{
	static const char *const breaks[] = {"echo nonsense >share", ": >share",
		"ln -s /etc/passwd share", "mkfifo share", "mkdir share",
		"head -c 20000 /dev/zero >share"};
	const struct said *said;
	struct keeper k;

	for (size_t i = 0; i < ARRAY_SIZE(breaks); i++) {
		make("device " A " memory 4g\\n");
		keep(&k);
		tool_run("cd \"$VGPU_STATE/one\" && rm -f share && %s", breaks[i]);
		said = tool_run("timeout 10 \"$VGPU\" set one --memory 2g");
		assert_int_equal(said->status, 1);
		assert_says(said->err, "slice 'one'");
		assert_null(strstr(tool_run("ls \"$VGPU_STATE/one\"")->out, "share.new"));
		drop(&k);
	}
}

static void a_temporary_that_somebody_left_is_in_nobodys_way(void **state)
{
	struct keeper k;
	struct share s;

	make("device " A " memory 4g\\n");
	keep(&k);
	tool_run("ln -s \"$HERE/victim\" \"$VGPU_STATE/one/share.new\"; : >\"$HERE/victim\"");
	set("--memory 2g", &s);
	assert_string_equal(tool_run("cat \"$HERE/victim\"")->out, "");
	drop(&k);
}

/* Each of many at once changes another term; none of them may be lost. */
static void of_many_who_change_a_slice_at_once_none_is_lost(void **state)
{
	struct keeper k;
	struct share s;

	make("device " A " memory 1g\\ndevice " B " memory 1g\\n");
	keep(&k);
	for (int round = 1; round <= 5; round++) {
		const struct said *said = tool_run(
			"for a in '--memory %dg' '--weight %d' '--priority %d' '--cores %d'; do "
			"for d in " A " " B "; do timeout 60 \"$VGPU\" set one --device $d $a & "
			"done; done; wait",
			round, round, round, round);

		assert_string_equal(said->err, "");
		read_share(&s);
		assert_int_equal(s.priority, round);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(s.devices[i].memory_bytes, (uint64_t)round * GIB);
			assert_int_equal(s.devices[i].compute.weight, round);
			assert_int_equal(s.devices[i].compute.cores_permille, 10 * round);
		}
	}
	drop(&k);
}

static void a_reader_never_sees_half_a_share(void **state)
{
	struct keeper k;
	const struct said *said;

	make("device " A " memory 1g\\n");
	keep(&k);
	said = tool_run("(i=0; while [ $i -lt 40 ]; do i=$((i+1)); "
			"\"$VGPU\" set one --memory ${i}g >/dev/null; done; : >\"$HERE/done\") & "
			"until [ -e \"$HERE/done\" ]; do tail -n 1 \"$VGPU_STATE/one/share\"; "
			"done | sort -u; wait");
	assert_string_equal(said->out, "end\n");
	assert_string_equal(said->err, "");
	drop(&k);
}

static void a_running_slice_is_set_and_leaves_nothing_behind(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --memory 1g --name live -- sh -c "
					   "'\"$VGPU\" set live --memory 3g && "
					   "grep memory \"$VGPU_SHARE\" | tail -n 1'");

	assert_int_equal(said->status, 0);
	assert_says(said->out, " memory 3221225472\n");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_makes_no_sense_says_what_would),
		cmocka_unit_test(what_is_named_changes_and_the_rest_stays),
		cmocka_unit_test(a_hard_limit_stays_hard_and_a_soft_one_soft),
		cmocka_unit_test(slices_without_a_lock_have_one_together),
		cmocka_unit_test(a_device_under_the_wildcard_gets_a_line_of_its_own),
		cmocka_unit_test(what_is_not_the_slices_is_refused_with_what_is),
		cmocka_unit_test(a_quota_below_what_is_held_is_set_and_noted),
		cmocka_unit_test(a_quota_can_be_taken_away_and_given_again),
		cmocka_unit_test(a_share_that_cannot_be_read_is_not_replaced),
		cmocka_unit_test(a_temporary_that_somebody_left_is_in_nobodys_way),
		cmocka_unit_test(of_many_who_change_a_slice_at_once_none_is_lost),
		cmocka_unit_test(a_reader_never_sees_half_a_share),
		cmocka_unit_test(a_running_slice_is_set_and_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
