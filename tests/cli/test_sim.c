/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu run --sim: devices by name, and a quota that holds, on the simulated node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/share.h"
#include "tests/cli/sim.h"

static void read_share(const char *text, struct share *ret_share)
{
	struct share_fault fault;

	assert_int_equal(share_parse(text, strlen(text), ret_share, &fault), 0);
}

static void a_slice_has_all_devices_where_none_is_chosen(void **state)
{
	struct share share;

	read_share(tool_run("\"$VGPU\" run --sim --memory 1g -- sh -c 'cat \"$VGPU_SHARE\"; "
			    "test -z \"$CUDA_VISIBLE_DEVICES\"'")
			   ->out,
		&share);
	assert_int_equal(share.device_count, 2);
	assert_int_equal(strncmp(share.devices[0].uuid, "GPU-", 4), 0);
}

static void chosen_devices_are_granted_and_visible_in_their_order(void **state)
{
	struct share share, all;
	const struct said *said;
	char expected[256];

	read_share(tool_run("\"$VGPU\" run --sim --memory 1g -- sh -c 'cat \"$VGPU_SHARE\"'")->out,
		&all);
	said = tool_run("\"$VGPU\" run --sim --memory 1g --device 1 --device %.12s -- "
			"sh -c 'cat \"$VGPU_SHARE\"; echo \"$CUDA_VISIBLE_DEVICES\" >&2'",
		all.devices[0].uuid);
	read_share(said->out, &share);
	assert_int_equal(share.device_count, 2);
	assert_string_equal(share.devices[0].uuid, all.devices[1].uuid);
	assert_string_equal(share.devices[1].uuid, all.devices[0].uuid);
	snprintf(expected, sizeof(expected), "%s,%s\n", all.devices[1].uuid, all.devices[0].uuid);
	assert_string_equal(said->err, expected);
}

static void a_device_that_is_not_here_is_refused_with_those_that_are(void **state)
{
	static const char *const devices[] = {"2", "GPU-", "GPU-0", "0x0", "-1", "''"};
	const struct said *said;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		said = tool_run(
			"\"$VGPU\" run --sim --memory 1g --device %s -- echo ran", devices[i]);
		assert_int_equal(said->status, 1);
		assert_says(said->err, "this machine has 0 GPU-");
		assert_string_equal(said->out, "");
	}
	said = tool_run("\"$VGPU\" run --sim --memory 1g --device 0 --device 0 -- echo ran");
	assert_says(said->err, "named twice");
}

static void a_quota_may_be_a_part_and_more_than_a_device_has_is_noted(void **state)
{
	/* What sets is outside the slice, where NVML tells of the whole device. */
	const struct said *said = tool_run(
		"\"$VGPU\" run --sim --memory 50%% --device 0 --name half -- sh -c "
		"'unset LD_PRELOAD; show() { grep -o \"memory.*\" \"$VGPU_SHARE\"; }; show; "
		"\"$VGPU\" set half --memory 2.5GiB; show; \"$VGPU\" set half --memory 25%%; show; "
		"\"$VGPU\" set half --memory 500g'");

	assert_says(said->out, "memory 75377410048\n");
	assert_says(said->out, "memory 2684354560\n");
	assert_says(said->out, "memory 37688705024\n");
	assert_says(said->err, "note: 500G is more than device 0 has (140.4G)");
	said = tool_run("\"$VGPU\" run --sim --memory 500GB --device 0 -- echo ran");
	assert_says(said->err, "note: 500G is more than device 0 has (140.4G)");
	assert_string_equal(said->out, "ran\n");
}

/* A program that calls has it in force at once, and one that does not call has not. */
static void what_was_set_is_told_and_whether_it_is_in_force(void **state)
{
	const struct said *said = tool_run(
		": >\"$HERE/load\"; : >\"$HERE/go\"; \"$VGPU\" run --sim --memory 2g --cores 30 "
		"--device 0 "
		"--name busy -- \"$LOAD\" seconds=60 >\"$HERE/load\" 2>&1 & first=$!; tries=0\n"
		"until \"$VGPU\" top --once --interval 0.1 --json | "
		"grep -q '\"launches_per_s\": [1-9]' || [ $tries = 100 ]; do "
		"tries=$((tries + 1)); done\n"
		/* a program that has no processor for a moment notices it later */
		"for i in 1 2 3 4 5 6 7 8 9 10; do "
		"\"$VGPU\" set busy --memory 3g --cores 20 | sed 's/GPU-[^:]*/GPU/' "
		">\"$HERE/said\"; "
		"! grep -q 'in force$' \"$HERE/said\" || break; done\n"
		"cat \"$HERE/said\"; kill $first; wait $first 2>/dev/null\n"
		"\"$VGPU\" run --sim --memory 2g --device 0 --name idle -- sh -c "
		"'\"$VGPU\" set idle --memory unlimited | sed \"s/GPU-[^:]*/GPU/\"'");

	assert_says(said->out, "slice busy, in force\n  GPU: memory 3G, compute 20%\n");
	assert_says(said->out, "slice idle, in force from its next program on\n  GPU: memory "
			       "unlimited, compute unlimited\n");
}

static void a_tenant_is_refused_where_its_slice_ends(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --sim --memory 2g -- \"$TENANT\"");

	assert_int_equal(said->status, 0);
	assert_string_equal(said->err, "");
	assert_says(said->out, "NVIDIA H200, 2.00 GiB");
	assert_says(said->out, "took 5 x 256 MiB = 1.25 GiB; the next: CUDA_ERROR_OUT_OF_MEMORY");
	assert_says(said->out, "took 3 again; the next: CUDA_ERROR_OUT_OF_MEMORY");
	assert_says(said->out, "20 kernels of 2 ms: ");
}

static void a_tenant_that_may_make_no_large_file_has_its_memory(void **state)
{
	assert_says(tool_run("\"$VGPU\" run --sim --memory 2g -- "
			     "sh -c 'ulimit -f 1000; exec \"$TENANT\"'")
			    ->out,
		"took 5 x 256 MiB = 1.25 GiB; the next: CUDA_ERROR_OUT_OF_MEMORY");
}

/* It is told to begin when vgpu run has ended. */
static void a_tenant_that_is_left_behind_has_its_memory(void **state)
{
	assert_int_equal(
		tool_run("\"$VGPU\" run --sim --memory 2g --name left -- sh -c '"
			 "{ until test -e \"$HERE/go\"; do sleep 0.01; done; exec \"$TENANT\"; } "
			 ">\"$HERE/tenant\" 2>&1 & echo $! >\"$HERE/pid\"'")
			->status,
		0);
	assert_says(tool_run(TOOL_HAS_ENDED "touch \"$HERE/go\"; pid=$(cat \"$HERE/pid\"); "
					    "until has_ended $pid; do sleep 0.01; done; "
					    "cat \"$HERE/tenant\"")
			    ->out,
		"took 5 x 256 MiB = 1.25 GiB; the next: CUDA_ERROR_OUT_OF_MEMORY");
	tool_run("\"$VGPU\" list --sim");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

static void a_running_slice_shows_what_it_holds_on_which_device(void **state)
{
	const struct said *said =
		tool_run(": >\"$HERE/tenant\"; \"$VGPU\" run --sim --memory 2g --device 0 "
			 "--name busy -- \"$TENANT\" --hold 60000 "
			 ">\"$HERE/tenant\" & tries=0\n"
			 "until grep -q holding \"$HERE/tenant\" || [ $tries = 1500 ]; do "
			 "sleep 0.02; tries=$((tries + 1)); done\n"
			 "\"$VGPU\" list | tr -s ' ' | " USED "; kill $!; wait");

	assert_string_equal(said->out, "SLICE DEVICE PROCESSES USED QUOTA % COMPUTE USED FOR\n"
				       "busy 0 H200 1 1.8G 2G 88 - context 518M plain 1.2G\n");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

/* It is booked and shown, and nothing stands where the quota would. */
static void a_slice_without_a_quota_of_memory_may_fill_the_card(void **state)
{
	const struct said *said = tool_run(
		": >\"$HERE/tenant\"; \"$VGPU\" run --sim --cores 30 --device 0 --name busy -- "
		"\"$TENANT\" --hold 60000 >\"$HERE/tenant\" & tries=0\n"
		"until grep -q holding \"$HERE/tenant\" || [ $tries = 1500 ]; do "
		"sleep 0.02; tries=$((tries + 1)); done\n"
		"head -n 1 \"$HERE/tenant\"\n"
		"\"$VGPU\" list | tr -s ' ' | sed -E 's, [0-9.-]+/30%%, 30%%,'\n"
		"\"$VGPU\" list --json | grep -o '\"quota_bytes\": [^,]*'\n"
		"COLUMNS=120 \"$VGPU\" top --once | tail -n 1 | tr -s ' ' | "
		"cut -d ' ' -f 1-4\n"
		"\"$VGPU\" doctor busy | grep -o 'memory none, compute 30%%\\|quota none'\n"
		"kill $!; wait");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "NVIDIA H200, 139.80 GiB, of them free: 139.29 GiB\n"
				       "SLICE DEVICE PROCESSES USED QUOTA % COMPUTE USED FOR\n"
				       "busy 0 H200 1 139.8G - - 30% context 518M plain 139.2G\n"
				       "\"quota_bytes\": null\nbusy 0 H200 139.8G/-\n"
				       "quota none\nmemory none, compute 30%\n");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

static void what_run_is_asked_for_and_cannot_be_is_refused(void **state)
{
	const struct said *said =
		tool_run("\"$VGPU\" run --sim --memory 1g --board h200x2 -- true || exit 7; "
			 "\"$VGPU\" run --sim --memory 1g --board nosuch -- true && exit 8; "
			 "\"$VGPU\" run --sim --memory 1g --board h200 -- true");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "nosuch");
	assert_says(tool_run("\"$VGPU\" run --sim --memory .5g -- true")->err,
		"'.5g': a digit belongs before the point, like 0.5g");
	assert_says(tool_run("\"$VGPU\" run --sim --memory 1 -- true")->err, "that is 1 byte, in");
	said = tool_run("\"$VGPU\" run --sim --memory 1g --board h200 -- true");
	assert_says(said->err, "a machine with another board exists already: h200x2, not h200 as "
			       "asked for (vgpu-sim reset drops it)");
}

/* What a second process of the slice takes then, though the first has begun with a quota. */
static void a_quota_that_is_taken_away_binds_nobody_any_more(void **state)
{
	/* The test before had a slice, too: for a second it counts as a neighbour, beside which time is metered. */
	const struct said *said = tool_run("sleep 1.2");

	said = sim_beside_a_tenant(
		"\"$VGPU\" set busy --memory unlimited >/dev/null; echo $?\n"
		": >\"$HERE/second\"; VGPU_SHARE=\"$VGPU_STATE/busy/share\" "
		"LD_PRELOAD=\"$LIBRARY\" "
		"LD_LIBRARY_PATH=\"$DRIVER\" \"$TENANT\" --blocks 20 --hold 60000 "
		">\"$HERE/second\" & second=$!\n" HOLDS("second") BUSY_ROW
		"\n\"$VGPU\" doctor busy >\"$HERE/doctor\"; echo $?; "
		"grep -c 'memory none, compute none' \"$HERE/doctor\"\n"
		"kill $second; wait $second 2>/dev/null");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\nbusy 0 H200 2 7.3G - - - context 1G plain 6.2G\n0\n2\n");
}

/* Says the state, and whether so much of the device is used, in percent; on a busy machine it may be less. */
#define BUSY(least, most)                                                        \
	"\"$VGPU\" top --once --json --sim | python3 -c '"                       \
	"import json, sys\n"                                                     \
	"d = json.load(sys.stdin)[\"slices\"][0][\"devices\"][0][\"compute\"]\n" \
	"print(d[\"state\"], " least " <= d[\"used_percent\"] <= " most ")'\n"

static void a_limit_that_is_set_and_a_suspension_are_kept_by_a_program_that_runs(void **state)
{
	const struct said *said = tool_run(
		": >\"$HERE/load\"; : >\"$HERE/go\"; \"$VGPU\" run --sim --memory 2g --cores 30 "
		"--device 0 --name busy -- \"$LOAD\" seconds=60 >\"$HERE/load\" & first=$!\n"
		"tries=0; until \"$VGPU\" list --json | grep -q '\"state\": \"metered\"' || "
		"[ $tries = 200 ]; do tries=$((tries + 1)); done\n" BUSY("5", "36")
		/* a first reading after a change may be of a time before it */
		"\"$VGPU\" suspend busy --sim; " BUSY("0", "36") BUSY(
			"0", "0") "\"$VGPU\" set busy --cores 60 >/dev/null; \"$VGPU\" suspend "
				  "busy --evict "
				  "--sim\n" BUSY("0", "0") "\"$VGPU\" resume busy --sim\n" BUSY(
					  "0", "70") BUSY("5", "70") "kill $first; wait $first");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out,
		"metered True\nsuspended True\nsuspended True\nevicted True\nmetered True\n"
		"metered True\n");
}

/* To root nothing is closed, so this is another user's. */
static void a_first_use_under_a_closed_umask_leaves_a_machine_that_can_be_used(void **state)
{
	static const char use[] =
		"cd /; U=\"$HERE/user\"; rm -rf \"$U\"; mkdir -m 777 \"$U\"; chmod a+x \"$HERE\"; "
		"as() { setpriv --reuid 54321 --regid 54321 --clear-groups env "
		"VGPU_STATE=\"$U/state\" "
		"VGPU_TURNS=\"$U/turns\" VGPU_SIM_STATE=\"$U/sim/machine\" sh -c \"$1\"; }\n"
		"as 'umask 777; \"$VGPU\" run --sim --memory 1g --name u -- sh -c "
		"\"\\\"$VGPU\\\" set u --memory 2g; \\\"$TENANT\\\"\"' || echo first\n"
		"as 'umask 777; \"$VGPU\" run --sim --memory 1g --cores 50 -- \"$TENANT\"' || echo "
		"second\n"
		"as 'umask 022; \"$VGPU\" run --sim --memory 1g --cores 50 -- \"$TENANT\"' || echo "
		"third\n"
		"stat -c '%%a %%n' \"$U\"/* \"$U\"/sim/machine | sed \"s|$U/||\"";
	const struct said *said;

	if (geteuid() != 0)
		skip();
	said = tool_run(use);
	print_message("%s", said->err);
	assert_null(strstr(said->out, "first\n"));
	assert_null(strstr(said->out, "second\n"));
	assert_null(strstr(said->out, "third\n"));
	assert_says(said->out, "700 sim\n700 state\n1777 turns\n600 sim/machine\n");
	tool_run("rm -rf \"$HERE/user\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_run_is_asked_for_and_cannot_be_is_refused),
		cmocka_unit_test(a_slice_has_all_devices_where_none_is_chosen),
		cmocka_unit_test(chosen_devices_are_granted_and_visible_in_their_order),
		cmocka_unit_test(a_device_that_is_not_here_is_refused_with_those_that_are),
		cmocka_unit_test(a_quota_may_be_a_part_and_more_than_a_device_has_is_noted),
		cmocka_unit_test(what_was_set_is_told_and_whether_it_is_in_force),
		cmocka_unit_test(a_tenant_is_refused_where_its_slice_ends),
		cmocka_unit_test(a_tenant_that_may_make_no_large_file_has_its_memory),
		cmocka_unit_test(a_tenant_that_is_left_behind_has_its_memory),
		cmocka_unit_test(a_running_slice_shows_what_it_holds_on_which_device),
		cmocka_unit_test(a_slice_without_a_quota_of_memory_may_fill_the_card),
		cmocka_unit_test(a_quota_that_is_taken_away_binds_nobody_any_more),
		cmocka_unit_test(
			a_limit_that_is_set_and_a_suspension_are_kept_by_a_program_that_runs),
		cmocka_unit_test(
			a_first_use_under_a_closed_umask_leaves_a_machine_that_can_be_used),
	};

	return cmocka_run_group_tests(tests, sim_set_up, tool_tear_down);
}
