/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu run --mps: slices side by side, and the life of the daemon that they share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/share.h"
#include "tests/cli/tool.h"

#define RUN  "timeout 60 \"$VGPU\" run --sim --mps --device 0 "
#define PIPE "\"$CUDA_MPS_PIPE_DIRECTORY\""

/* What the scripts below call: `await WORDS` waits at most 30 s until the words succeed. */
static const char functions[] =
	"await() { tries=0; until eval \"$1\"; do [ $tries = 1500 ] && return 1; sleep 0.02; "
	"tries=$((tries + 1)); done; }\n"
	"busy_ns() { \"$VGPU_SIM\" truth --json | grep -o '\"busy_ns\":[0-9]*' | head -n 1; "
	"}\n" TOOL_HAS_ENDED
	"daemon() { cat \"$VGPU_STATE\"/.mps-*/pipe/nvidia-cuda-mps-control.pid; }\n"
	"moves() { a=$(busy_ns); sleep 0.2; [ \"$a\" != \"$(busy_ns)\" ]; }\n"
	"stands() { ! moves; }\n";
#define LIB ". \"$HERE/functions\"\n"

static int set_up(void **state)
{
	int r = tool_set_up(state);
	FILE *file;

	unsetenv("VGPU_LIBDIR");
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	setenv("VGPU_SIM_STATE", tool_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	file = fopen(tool_path("functions"), "we");
	if (!file || fputs(functions, file) < 0 || fclose(file) != 0)
		return -1;
	return r;
}

static void assert_nothing_is_left(void)
{
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

/* How many kernels of 500 us were given to the device within 2 s, by the load whose words are in the file. */
#define LOAD_2_S   "\"$LOAD\" seconds=2 duration_us=500 bin_us=100000"
#define ALL_OF_2_S 4000
#define COUNT_OF(name) \
	"grep -o '\"launches\": [0-9]*' \"$HERE/" name "\" | head -n 1 | cut -d ' ' -f 2\n"

/* In turns it would be half. */
static bool is_full_speed(int count)
{
	return count >= ALL_OF_2_S * 2 / 3 && count <= ALL_OF_2_S * 11 / 10;
}

static bool are_side_by_side_at_full_speed(void)
{
	const struct said *said = tool_run(
		LIB RUN "--memory 2g --cores 50 -- " LOAD_2_S " >\"$HERE/one\" &\n"
			"one=$!\n" RUN "--memory 2g --cores 50 -- " LOAD_2_S " >\"$HERE/two\" &\n"
			"wait $one; wait $!\n" COUNT_OF("one") COUNT_OF("two"));
	int one = 0, two = 0;

	assert_int_equal(sscanf(said->out, "%d %d", &one, &two), 2);
	assert_string_equal(said->err, "");
	assert_nothing_is_left();
	print_message("%d and %d of %d\n", one, two, ALL_OF_2_S);
	return is_full_speed(one) && is_full_speed(two);
}

static void two_slices_of_half_run_side_by_side_at_full_speed(void **state)
{
	bool are = false;

	/* a machine that does other things may begin one after the other */
	for (unsigned i = 0; i < 5 && !are; i++)
		are = are_side_by_side_at_full_speed();
	assert_true(are);
}

static void who_is_no_client_is_limited_by_time(void **state)
{
	/* Each on a device of its own, so that nothing but its own limit holds it back. */
	const struct said *said = tool_run(
		"export VGPU_SIM_BOARD=h200x8 VGPU_SIM_STATE=\"$HERE/eight\"; device=0\n"
		"while read -r escape; do\n"
		"{ timeout 60 \"$VGPU\" run --sim --mps --device $device --memory 2g --cores 20 -- "
		"env $escape " LOAD_2_S " >\"$HERE/$device\" || echo failed; } &\n"
		"device=$((device + 1)); done <<END\n"
		"-u CUDA_MPS_PIPE_DIRECTORY\nCUDA_MPS_PIPE_DIRECTORY=/nowhere\n"
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100\n-u CUDA_MPS_ACTIVE_THREAD_PERCENTAGE\n"
		"END\nwait; for device in 0 1 2 3; do " COUNT_OF("$device") "done");
	int count[4];

	assert_int_equal(
		sscanf(said->out, "%d %d %d %d", &count[0], &count[1], &count[2], &count[3]), 4);
	for (int i = 0; i < 4; i++)
		assert_in_range(count[i], 1, ALL_OF_2_S * 2 / 5);
}

static void memory_above_the_quota_is_refused_by_the_books_and_by_the_driver(void **state)
{
	const struct said *said = tool_run(RUN "--memory 2g -- \"$TENANT\"");

	assert_int_equal(said->status, 0);
	assert_says(said->out, "took 5 x 256 MiB = 1.25 GiB; the next: CUDA_ERROR_OUT_OF_MEMORY");
	/* Without the library there is only the driver's own limit. */
	said = tool_run(RUN "--memory 2g -- env -u LD_PRELOAD \"$TENANT\"");
	assert_int_equal(said->status, 0);
	assert_says(said->out, " x 256 MiB = 1.");
	assert_says(said->out, "; the next: CUDA_ERROR_OUT_OF_MEMORY");
}

static void the_program_is_told_what_the_driver_needs_to_know(void **state)
{
	const struct said *said = tool_run(
		"timeout 60 \"$VGPU\" run --sim --mps --memory 8g --cores 29.1 -- sh -c 'echo "
		"$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; "
		"stat -c %%a " PIPE " \"$CUDA_MPS_LOG_DIRECTORY\" " PIPE
		"/..; cat \"$VGPU_SHARE\" >&2; "
		"echo " PIPE "'");
	struct share_fault fault;
	struct share share;

	assert_says(said->out, "30 0=8192M,1=8192M\n700\n700\n700\n");
	assert_int_equal(share_parse(said->err, strlen(said->err), &share, &fault), 0);
	assert_says(said->out, share.mps);
	assert_string_equal(share.turns, "");
	assert_string_equal(tool_run(RUN "--memory 1g --cap 0.1 -- sh -c 'echo "
					 "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE "
					 "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'")
				    ->out,
		"1 0=1024M\n");
	assert_string_equal(tool_run(RUN "--memory 1g -- sh -c 'echo "
					 "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'")
				    ->out,
		"100\n");
	/* Without a quota of memory the driver is told none. */
	assert_string_equal(tool_run(RUN "-- sh -c 'echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE "
					 "${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-none}'; "
					 "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=5M " RUN
					 "--cores 40 -- sh -c 'echo "
					 "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE "
					 "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'")
				    ->out,
		"100 none\n40 0=5M\n");
}

static void one_daemon_is_shared_and_ends_with_the_last(void **state)
{
	static const char script[] = LIB
		"tell='echo \"$CUDA_MPS_PIPE_DIRECTORY\"'\n" RUN
		"--memory 1g -- sh -c \"$tell\"' >\"$HERE/first\"; : >\"$HERE/go\"\n"
		"while [ -e \"$HERE/go\" ]; do sleep 0.02; done' &\n"
		"first=$!; await '[ -e \"$HERE/go\" ]'; pid=$(daemon)\n" RUN
		"--memory 1g -- sh -c \"$tell\"' >\"$HERE/second\"; kill -0 '$pid' && echo lives'\n"
		"has_ended $pid || echo still; cmp \"$HERE/first\" \"$HERE/second\" && echo same\n"
		"timeout 60 \"$VGPU\" run --sim --mps --memory 1g --device 1 -- sh -c \"$tell\" |\n"
		"cmp -s - \"$HERE/first\" || echo other\n"
		"rm \"$HERE/go\"; wait $first; await \"has_ended $pid\" && echo ended";

	assert_string_equal(tool_run("%s", script)->out, "lives\nstill\nsame\nother\nended\n");
	assert_nothing_is_left();
}

static void many_that_begin_and_end_at_once_share_and_leave_nothing(void **state)
{
	const struct said *said =
		tool_run("for i in 1 2 3 4 5 6 7 8; do " RUN "--memory 1g -- sh -c '[ -p " PIPE
			 "/control ] && echo ran' & done; wait");

	assert_string_equal(said->out, "ran\nran\nran\nran\nran\nran\nran\nran\n");
	assert_string_equal(said->err, "");
	assert_nothing_is_left();
}

static void the_daemon_of_a_killed_vgpu_ends_with_its_program_at_the_next_command(void **state)
{
	static const char script[] = LIB RUN
		"--memory 1g -- sh -c 'until [ -s \"${VGPU_SHARE%share}lock\" ]; do :; done\n"
		"echo $$ >\"$HERE/orphan\"; kill -9 $PPID; exec sleep 60 >/dev/null 2>&1'\n"
		"await '[ -s \"$HERE/orphan\" ]'; orphan=$(cat \"$HERE/orphan\"); pid=$(daemon)\n"
		"\"$VGPU\" list >/dev/null; has_ended $pid || echo lives\n"
		"kill -9 $orphan; await \"has_ended $orphan\"; has_ended $pid || echo still\n"
		"\"$VGPU\" list >/dev/null; await \"has_ended $pid\" && echo ended";

	assert_string_equal(tool_run("%s", script)->out, "lives\nstill\nended\n");
	assert_nothing_is_left();
}

static void a_daemon_that_was_killed_is_replaced(void **state)
{
	const struct said *said = tool_run(RUN "--memory 1g -- sh -c '" LIB
					       "kill -9 $(daemon); await \"has_ended $(daemon)\"\n"
					       "exec " RUN "--memory 1g -- \"$TENANT\"'");

	assert_int_equal(said->status, 0);
	assert_says(said->out, "CUDA_ERROR_OUT_OF_MEMORY");
	assert_nothing_is_left();
}

static void an_operators_daemon_is_used_and_never_ended(void **state)
{
	const struct said *said =
		tool_run("export CUDA_MPS_PIPE_DIRECTORY=\"$HERE/operators\"; mkdir " PIPE
			 "; \"$MPS\" -d\n" RUN "--memory 1g -- sh -c 'echo " PIPE
			 "; ls -A \"$VGPU_STATE\" | grep -c mps'\n"
			 "\"$VGPU\" list >/dev/null; echo get_server_list | \"$MPS\" | grep -c .\n"
			 "echo quit | \"$MPS\"");
	char expected[600];

	snprintf(expected, sizeof(expected), "%s\n0\n1\n", tool_path("operators"));
	assert_string_equal(said->out, expected);
	assert_nothing_is_left();
}

static void what_stands_in_the_environment_can_lower_and_do_no_harm(void **state)
{
	static const struct {
		const char *variable, *seen;
	} cases[] = {
		{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=10", "10 0=1024M\n"},
		{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100", "30 0=1024M\n"},
		{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=-5", "30 0=1024M\n"},
		{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1e9", "30 0=1024M\n"},
		{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", "30 0=1024M\n"},
		{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=999G,nonsense", "30 0=1024M\n"},
		{"CUDA_MPS_PIPE_DIRECTORY=relative", "30 0=1024M\n"},
		{"CUDA_MPS_PIPE_DIRECTORY=/nowhere/at/all", "30 0=1024M\n"},
		{"CUDA_MPS_PIPE_DIRECTORY=/dev", "30 0=1024M\n"},
		{"CUDA_MPS_PIPE_DIRECTORY=", "30 0=1024M\n"},
		{"CUDA_MPS_LOG_DIRECTORY=/dev/null/x", "30 0=1024M\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct said *said =
			tool_run("export %s; " RUN "--memory 1g --cores 30 -- sh -c 'echo "
				 "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE "
				 "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; [ -p " PIPE "/control ]'",
				cases[i].variable);

		assert_int_equal(said->status, 0);
		assert_string_equal(said->out, cases[i].seen);
		assert_nothing_is_left();
	}
}

static void what_cannot_be_is_refused_before_anything_runs(void **state)
{
	const struct said *said;

	said = tool_run(RUN "--memory 1g --weight 7 -- echo ran");
	assert_int_equal(said->status, 2);
	assert_says(said->err, "--weight is for time slices");
	said = tool_run(RUN "--memory 1g --priority 0 -- echo ran");
	assert_says(said->err, "--priority is for time slices");
	said = tool_run("CUDA_VISIBLE_DEVICES=0 \"$VGPU\" run --sim --mps --memory 1g -- echo ran");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "choose devices with --device");
	said = tool_run("PATH=/nowhere \"$VGPU\" run --mps --memory 1g -- echo ran");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "there is no nvidia-cuda-mps-control in PATH");
	said = tool_run("long=\"$HERE/$(printf '%%0100d' 0)\"; mkdir -m 700 \"$long\"; "
			"VGPU_STATE=$long " RUN "--memory 1g -- echo ran");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "too long a name for the MPS daemon's sockets");
	assert_string_equal(said->out, "");
	assert_nothing_is_left();
}

/* As on a real node: the program in PATH, the driver's libraries where the linker finds them. */
static const struct said *with_control(const char *script)
{
	return tool_run("rm -rf \"$HERE/bin\"; mkdir \"$HERE/bin\"\n"
			"cat >\"$HERE/bin/nvidia-cuda-mps-control\" <<'EOF'\n#!/bin/sh\n%s\nEOF\n"
			"chmod +x \"$HERE/bin/nvidia-cuda-mps-control\"\n"
			"PATH=\"$HERE/bin:$PATH\" LD_LIBRARY_PATH=\"$DRIVER:$NVML\" timeout 60 "
			"\"$VGPU\" run "
			"--mps --memory 1g --device 0 -- echo ran",
		script);
}

static void a_daemon_that_does_not_start_is_told_with_its_last_words(void **state)
{
	const struct said *said = with_control("echo first; echo 'no licence today' >&2; exit 1");

	assert_int_equal(said->status, 1);
	assert_string_equal(said->out, "");
	assert_says(said->err, "the MPS control daemon does not start: no licence today\n");
	assert_nothing_is_left();
	said = with_control(
		"echo 'a line of the log' >\"$CUDA_MPS_LOG_DIRECTORY/control.log\"; exec sleep 60");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "does not start within 5 s: a line of the log\n");
	assert_nothing_is_left();
	said = with_control("exec \"$MPS\" \"$@\"");
	assert_string_equal(said->out, "ran\n");
	assert_string_equal(said->err, "");
	assert_nothing_is_left();
}

static void list_top_and_doctor_say_that_it_is_mps(void **state)
{
	static const char script[] =
		LIB ": >\"$HERE/tenant\"\n" RUN "--memory 2g --cores 30 --name side -- \"$TENANT\" "
		    "--hold 60000 >\"$HERE/tenant\" &\n"
		    "first=$!; await 'grep -q holding \"$HERE/tenant\"'\n"
		    "\"$VGPU\" list --sim; COLUMNS=120 \"$VGPU\" top --once --sim\n"
		    "\"$VGPU\" doctor side; \"$VGPU\" list --json | grep -o '\"mode\": \"mps\"'\n"
		    "\"$VGPU\" set side --cores 40 2>&1; \"$VGPU\" set side --memory 3g "
		    ">/dev/null; echo set $?\n"
		    "kill -9 $(daemon); await '\"$VGPU\" doctor side | grep -q \"does not run\"'\n"
		    "\"$VGPU\" doctor side | grep 'no MPS daemon'; kill $first; wait $first";
	const struct said *said = tool_run("%s", script);

	assert_says(said->out, "2G  88  MPS 30%  ");
	assert_says(said->out, "1.8G/2G  MPS 30%  ");
	assert_says(said->out, "compute MPS 30%\n");
	assert_says(said->out, "30% of the multiprocessors, by the daemon in ");
	assert_says(said->out, ", which runs\n");
	assert_says(said->out, "\"mode\": \"mps\"\n");
	assert_says(said->out, "fixed when it begins; only its memory can be set\nset 0\n");
	assert_says(said->out, "no MPS daemon runs in ");
	assert_nothing_is_left();
}

static void a_suspended_slice_reaches_nothing_and_then_goes_on(void **state)
{
	static const char script[] = LIB RUN
		"--memory 2g --cores 30 --name side -- \"$LOAD\" seconds=60 >\"$HERE/load\" &\n"
		"first=$!; await moves && echo busy\n"
		"\"$VGPU\" suspend side; echo $?; await stands && stands && echo still\n"
		"\"$VGPU\" list --sim | grep -o 'MPS 30% suspended'\n"
		"\"$VGPU\" resume side; echo $?; await moves && echo again\n"
		"kill $first; wait $first";

	assert_string_equal(
		tool_run("%s", script)->out, "busy\n0\nstill\nMPS 30% suspended\n0\nagain\n");
	assert_nothing_is_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_slices_of_half_run_side_by_side_at_full_speed),
		cmocka_unit_test(who_is_no_client_is_limited_by_time),
		cmocka_unit_test(memory_above_the_quota_is_refused_by_the_books_and_by_the_driver),
		cmocka_unit_test(the_program_is_told_what_the_driver_needs_to_know),
		cmocka_unit_test(one_daemon_is_shared_and_ends_with_the_last),
		cmocka_unit_test(many_that_begin_and_end_at_once_share_and_leave_nothing),
		cmocka_unit_test(
			the_daemon_of_a_killed_vgpu_ends_with_its_program_at_the_next_command),
		cmocka_unit_test(a_daemon_that_was_killed_is_replaced),
		cmocka_unit_test(an_operators_daemon_is_used_and_never_ended),
		cmocka_unit_test(what_stands_in_the_environment_can_lower_and_do_no_harm),
		cmocka_unit_test(what_cannot_be_is_refused_before_anything_runs),
		cmocka_unit_test(a_daemon_that_does_not_start_is_told_with_its_last_words),
		cmocka_unit_test(list_top_and_doctor_say_that_it_is_mps),
		cmocka_unit_test(a_suspended_slice_reaches_nothing_and_then_goes_on),
	};

	return cmocka_run_group_tests(tests, set_up, tool_tear_down);
}
