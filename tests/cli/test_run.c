/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu run: what it refuses, what the program gets, and what is left afterwards. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "policy/share.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

static void a_call_that_makes_no_sense_says_what_would(void **state)
{
	static const struct {
		const char *arguments, *advice;
	} calls[] = {
		{"run", "--memory 2g"},
		{"run true", "--memory 2g"},
		{"run --name a --device 0 true", "--memory 2g"},
		{"run --cores 30", "needs a program"},
		{"run --memory", "--memory needs a value"},
		{"run --memory 2g", "needs a program"},
		{"run --memory 10XB true", "512m, 2.5g, 8GiB"},
		{"run --memory 1.5x true", "512m, 2.5g, 8GiB"},
		{"run --memory -1g true", "512m, 2.5g, 8GiB"},
		{"run --memory 99999999999g true", "too large"},
		{"run --memory 0 true", "a size like 2g"},
		{"run --memory 2 true", "that is 2 bytes"},
		{"run --memory 0.5k true", "that is 512 bytes"},
		{"run --memory 1023KiB true", "a size like 2g is right"},
		{"run --memory 0% true", "50% of each device"},
		{"run --memory 100.1% true", "50% of each device"},
		{"run --memory % true", "50% of each device"},
		{"run --memory 50.55% true", "at most one decimal"},
		{"run --memory 10XB true", "or unlimited"},
		{"run --memory none true", "or unlimited"},
		{"run --memory Unlimited true", "or unlimited"},
		{"run true", "--memory unlimited"},
		{"run --memory 1g --name a/b true", "letters, digits"},
		{"run --memory 1g --name .a true", "letters, digits"},
		{"run --memory 1g --board t4 true", "add --sim"},
		{"run --memory 1g --cores 0 true", "0.1 to 100"},
		{"run --memory 1g --cores 100.1 true", "0.1 to 100"},
		{"run --memory 1g --cores 30%% true", "0.1 to 100"},
		{"run --memory 1g --cap -5 true", "0.1 to 100"},
		{"run --memory 1g --cap", "--cap needs a value"},
		{"run --memory 1g --cores 50 --cap 49.9 true", "above the cap of 49.9%"},
		{"run --memory 1g --weight 0 true", "1 to 10000"},
		{"run --memory 1g --weight 1.5 true", "1 to 10000"},
		{"run --memory 1g --priority 10 true", "0 to 9"},
		{"run --memory 1g --priority x true", "0 to 9"},
		{"run --memory 1g --exports some true", "none and all are right"},
		{"run --memory 1g --imports none true", "own and any are right"},
		{"run --memory 1g --colour true", "no option --colour"},
		{"run -x", "no option -x"},
		{"list --json=2", "option --json=2 takes no value"},
		{"list --json -xy", "no option -x"},
		{"list --json -x", "no option -x"},
		{"list here", "--region PATH"},
		{"help nothing", "no command 'nothing'"},
		{"version 2", "no arguments"},
		{"walk", "no command 'walk'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct said *said = tool_run("\"$VGPU\" %s", calls[i].arguments);

		assert_int_equal(said->status, 2);
		assert_says(said->err, calls[i].advice);
		assert_int_equal(strncmp(said->err, "vgpu: ", 6), 0);
		/* once, in one line */
		assert_ptr_equal(strchr(said->err, '\n'), said->err + strlen(said->err) - 1);
		assert_string_equal(said->out, "");
	}
}

static void help_tells_of_every_command(void **state)
{
	static const char *const commands[] = {"run", "set", "cdi", "suspend", "resume", "list",
		"top", "doctor", "prepare", "plan", "explain", "help", "version"};

	assert_says(tool_run("\"$VGPU\" help")->out, "vgpu list");
	assert_says(tool_run("\"$VGPU\" --help")->out, "vgpu run");
	assert_says(tool_run("\"$VGPU\" help run")->out, "--memory SIZE");
	assert_says(tool_run("\"$VGPU\" -h")->out, "vgpu run");
	assert_string_equal(tool_run("\"$VGPU\" -V")->out, tool_run("\"$VGPU\" version")->out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		static char whole[65536];

		snprintf(whole, sizeof(whole), "%s",
			tool_run("\"$VGPU\" help %s", commands[i])->out);
		assert_says(whole, commands[i]);
		assert_string_equal(tool_run("\"$VGPU\" %s --help", commands[i])->out, whole);
		assert_string_equal(tool_run("\"$VGPU\" %s -h", commands[i])->out, whole);
		assert_int_equal(tool_run("\"$VGPU\" %s -h", commands[i])->status, 0);
	}
	assert_says(tool_run("\"$VGPU\" run --memory 2g --help true")->out, "--memory SIZE");
	/* Behind the program it is the program's. */
	assert_string_equal(
		tool_run("\"$VGPU\" run --memory 2g sh -c 'echo $0' --help")->out, "--help\n");
	assert_string_equal(tool_run("\"$VGPU\" help --names")->out,
		"run\nset\ncdi\nsuspend\nresume\nlist\ntop\ndoctor\nprepare\nplan\nexplain\nhelp\nv"
		"ersion\n");
	assert_int_equal(tool_run("\"$VGPU\" --version")->status, 0);
	assert_int_equal(tool_run("\"$VGPU\"")->status, 2);
}

static void the_share_file_says_what_was_granted(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --memory 3g --name shared -- "
					   "sh -c 'cat \"$VGPU_SHARE\"; stat -c %%a "
					   "\"$VGPU_SHARE\" \"${VGPU_SHARE%%/*}\" >&2'");
	struct share_fault fault;
	struct share share;

	assert_int_equal(said->status, 0);
	assert_int_equal(share_parse(said->out, strlen(said->out), &share, &fault), 0);
	assert_string_equal(share.slice, "shared");
	assert_string_equal(share.region, tool_path("state/shared/region"));
	assert_true(share.device_count >= 1);
	for (unsigned i = 0; i < share.device_count; i++)
		assert_int_equal(share.devices[i].memory_bytes, UINT64_C(3) << 30);
	assert_says(said->err, "444\n700\n");
}

/* Where there is a device, nothing is to be said. */
static void without_a_device_the_way_to_a_simulated_one_is_said(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --memory 2g -- true");

	assert_int_equal(said->status, 0);
	if (!*said->err)
		return;
	assert_says(said->err, "note: no device is seen here");
	assert_says(said->err, "--sim runs the program on a simulated device");
	said = tool_run("\"$VGPU\" run --memory 50%% -- true");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "--memory 50%: nothing tells how much memory");
	assert_says(tool_run("\"$VGPU\" run --memory 2g --device 0 -- true")->err,
		"--sim runs the program");
}

static void share_of(const char *options, struct share *ret_share)
{
	const struct said *said =
		tool_run("\"$VGPU\" run %s -- sh -c 'cat \"$VGPU_SHARE\"'", options);
	struct share_fault fault;

	assert_int_equal(said->status, 0);
	assert_int_equal(share_parse(said->out, strlen(said->out), ret_share, &fault), 0);
}

static void the_share_file_says_what_compute_was_granted(void **state)
{
	struct share share;

	share_of("--memory 1g", &share);
	assert_int_equal(share.devices[0].compute.cores_permille, 0);
	assert_int_equal(share.devices[0].compute.cap_permille, 0);
	assert_int_equal(share.priority, SHARE_DEFAULT_PRIORITY);
	assert_false(share.is_suspended);
	share_of("--memory 1g --cores 12.5", &share);
	assert_int_equal(share.devices[0].compute.cores_permille, 125);
	assert_int_equal(share.devices[0].compute.cap_permille, 125);
	share_of("--memory 1g --cap 60 --cores 30 --weight 7 --priority 0", &share);
	assert_int_equal(share.devices[0].compute.cores_permille, 300);
	assert_int_equal(share.devices[0].compute.cap_permille, 600);
	assert_int_equal(share.devices[0].compute.weight, 7);
	assert_int_equal(share.priority, 0);
	share_of("--memory 1g --cores 30 --cap 100", &share);
	assert_int_equal(share.devices[0].compute.cap_permille, SHARE_WHOLE_PERMILLE);
}

static void the_share_file_says_that_nothing_is_exported(void **state)
{
	struct share share;

	share_of("--memory 1g", &share);
	assert_false(share.has_no_exports);
	share_of("--memory 1g --exports all", &share);
	assert_false(share.has_no_exports);
	share_of("--memory 1g --exports none", &share);
	assert_true(share.has_no_exports);
}

static void the_share_file_says_that_others_handles_are_opened(void **state)
{
	struct share share;

	share_of("--memory 1g", &share);
	assert_false(share.imports_any);
	share_of("--memory 1g --imports own", &share);
	assert_false(share.imports_any);
	share_of("--memory 1g --imports any", &share);
	assert_true(share.imports_any);
}

static void must_have_no_quota(const char *options)
{
	struct share share;

	share_of(options, &share);
	assert_true(share.device_count >= 1);
	for (unsigned k = 0; k < share.device_count; k++)
		assert_int_equal(share.devices[k].memory_bytes, SHARE_UNLIMITED);
}

static void where_compute_alone_is_granted_memory_has_no_quota(void **state)
{
	static const char *const options[] = {"--cores 30", "--cap 40", "--cores 30 --cap 100",
		"--weight 50", "--priority 0", "--cores none"};
	struct share share;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		must_have_no_quota(options[i]);
	share_of("--cores 30", &share);
	assert_int_equal(share.devices[0].compute.cap_permille, 300);
}

static void memory_has_no_quota_where_that_is_said(void **state)
{
	static const char *const options[] = {"--memory unlimited", "--memory unlimited --cores 30",
		"--cap 40 --memory unlimited"};
	struct share share;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		must_have_no_quota(options[i]);
	/* Neither a quota nor a limit of compute: on purpose. */
	share_of("--memory unlimited", &share);
	assert_int_equal(share.devices[0].compute.cores_permille, 0);
	assert_int_equal(share.devices[0].compute.cap_permille, 0);
	/* The last word counts. */
	share_of("--memory unlimited --memory 1g", &share);
	assert_int_equal(share.devices[0].memory_bytes, UINT64_C(1) << 30);
}

static void a_quota_of_memory_can_be_set_where_there_was_none(void **state)
{
	assert_says(tool_run("\"$VGPU\" run --cores 30 --name free -- sh -c '\"$VGPU\" set free "
			     "--memory 3g; cat \"$VGPU_SHARE\"'")
			    ->out,
		" memory 3221225472 cores 30\n");
}

static void slices_take_turns_in_a_folder_that_all_can_write_to(void **state)
{
	struct share share;

	tool_run("rm -rf \"$HERE/turns\"; umask 077");
	share_of("--memory 1g", &share);
	assert_string_equal(share.turns, tool_path("turns"));
	assert_string_equal(tool_run("stat -c %%a \"$HERE/turns\"")->out, "1777\n");
}

static void without_a_folder_of_turns_there_is_no_line_of_it(void **state)
{
	static const char *const folders[] = {"/dev/null", "/nowhere/turns", "relative", "/a b"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		const struct said *said = tool_run("VGPU_TURNS='%s' \"$VGPU\" run --memory 1g -- "
						   "sh -c 'cat \"$VGPU_SHARE\"'",
			folders[i]);

		assert_int_equal(said->status, 0);
		assert_null(strstr(said->out, "turns"));
		assert_says(said->err, "has no time slices");
	}
	/* A link may lead anywhere. */
	assert_null(strstr(tool_run("ln -s /tmp \"$HERE/link\"; VGPU_TURNS=\"$HERE/link\" "
				    "\"$VGPU\" run --memory 1g -- sh -c 'cat \"$VGPU_SHARE\"'")
				   ->out,
		"turns"));
}

static void the_library_is_loaded_before_what_was_preloaded_already(void **state)
{
	const struct said *said = tool_run("LD_PRELOAD=libc.so.6 \"$VGPU\" run --memory 1g -- "
					   "sh -c 'echo \"$LD_PRELOAD\"'");
	char expected[PATH_MAX];

	assert_non_null(realpath(getenv("VGPU_LIBDIR"), expected));
	assert_int_equal(strncmp(said->out, expected, strlen(expected)), 0);
	assert_says(said->out, "/libvgpu.so:libc.so.6\n");
}

static void a_library_that_is_nowhere_is_missed_by_name(void **state)
{
	const struct said *said = tool_run("VGPU_LIBDIR=/nowhere \"$VGPU\" run --memory 1g true");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "libvgpu.so is not in /nowhere");
}

static void the_exit_status_is_the_programs(void **state)
{
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g true")->status, 0);
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g -- sh -c 'exit 7'")->status, 7);
	assert_int_equal(
		tool_run("\"$VGPU\" run --memory 1g -- sh -c 'kill -9 $$'")->status, 128 + 9);
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g -- no-such-program")->status, 127);
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g -- ./nothing")->status, 127);
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g -- /")->status, 126);
}

static void a_signal_reaches_the_program(void **state)
{
	static const char *const signals[] = {"TERM", "INT", "HUP", "QUIT", "USR1", "USR2"};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		assert_int_equal(tool_run("\"$VGPU\" run --memory 1g -- sh -c 'trap \"exit 5\" %s; "
					  "kill -%s $PPID; while :; do sleep 0.01; done'",
					 signals[i], signals[i])
					 ->status,
			5);
}

static void nothing_is_left_of_a_slice_that_has_ended(void **state)
{
	tool_run("\"$VGPU\" run --memory 1g true; \"$VGPU\" run --memory 1g false; "
		 "\"$VGPU\" run --memory 1g no-such-program");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

/* Its first process may be one that may make no file so large. */
static void the_region_is_there_before_the_program(void **state)
{
	const struct said *said = tool_run(
		"\"$VGPU\" run --memory 1g -- sh -c 'test -s \"${VGPU_SHARE%%share}region\"'");

	assert_int_equal(said->status, 0);
	said = tool_run("ulimit -f 100; \"$VGPU\" run --memory 1g -- echo ran");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "(ulimit -f); raise the limit to 5 MiB");
	assert_string_equal(said->out, "");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
	/* in blocks of 512 bytes */
	said = tool_run("ulimit -f 10240; \"$VGPU\" run --memory 1g -- echo ran");
	assert_string_equal(said->out, "ran\n");
}

/* A pipe has no end, as the files of this test's output have. */
static void who_may_write_no_file_leaves_no_half_of_a_slice(void **state)
{
	const struct said *said = tool_run(
		"{ (ulimit -f 0; \"$VGPU\" run --memory 1g --name half -- true; echo $?); } "
		"2>&1 | cat; ls -A \"$VGPU_STATE\" | grep half");

	assert_says(said->out, "make slice 'half' in ");
	assert_says(said->out, ": File too large\n1\n");
	assert_null(strstr(said->out, ".half"));
}

static void a_name_in_use_is_refused(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" run --memory 1g --name one -- "
					   "\"$VGPU\" run --memory 1g --name one -- echo ran");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "slice 'one' is there already");
	assert_string_equal(said->out, "");
}

static void a_program_without_a_proper_name_gets_a_slice_too(void **state)
{
	const struct said *said = tool_run(
		"cp \"$(command -v env)\" \"$HERE/.a b\"; "
		"\"$VGPU\" run --memory 1g -- \"$HERE/.a b\" sh -c 'echo \"$VGPU_SHARE\"'");

	assert_int_equal(said->status, 0);
	assert_says(said->out, "/_a_b-");
}

/* Starts a slice "old" whose vgpu is killed while its program sleeps; *ret_pid is the program's. */
static void orphan(int *ret_pid)
{
	const struct said *said = tool_run("\"$VGPU\" run --memory 1g --name old -- sh -c '"
					   "until [ -s \"${VGPU_SHARE%%share}lock\" ]; do :; done; "
					   "echo $$ >\"$HERE/orphan\"; kill -9 $PPID; "
					   "exec sleep 60 >/dev/null 2>&1'; cat \"$HERE/orphan\"");

	*ret_pid = atoi(said->out);
	assert_true(*ret_pid > 1);
}

static void a_slice_outlives_a_vgpu_that_was_killed(void **state)
{
	int pid;

	orphan(&pid);
	assert_says(tool_run("\"$VGPU\" list")->out, "old");
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g --name old true")->status, 1);
	/* and is removed when its program has gone, too */
	tool_run(TOOL_HAS_ENDED "kill -9 %d; until has_ended %d; do sleep 0.01; done", pid, pid);
	assert_int_equal(tool_run("\"$VGPU\" run --memory 1g --name old true")->status, 0);
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

/* vgpu run has ended with its program; what that left behind has used no device yet. */
static void a_slice_stays_while_anything_that_was_started_in_it_lives(void **state)
{
	static const char *const ways[] = {"sleep 60 &", "setsid -f sleep 60", "nohup sleep 60 &",
		"python3 -c 'import subprocess; subprocess.Popen([\"sleep\", \"60\"])'"};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		FILE *script = fopen(tool_path("left.sh"), "we");

		assert_non_null(script);
		fprintf(script, "exec >/dev/null 2>&1\n%s\n", ways[i]);
		fclose(script);
		assert_int_equal(
			tool_run("\"$VGPU\" run --memory 1g --name left -- sh \"$HERE/left.sh\"")
				->status,
			0);
		assert_int_equal(tool_run("test -s \"$VGPU_STATE/left/share\"")->status, 0);
		assert_says(tool_run("\"$VGPU\" list")->out, "left");
		assert_int_equal(tool_run("\"$VGPU\" run --memory 1g --name left true")->status, 1);
		/* The one whose environment names the slice. */
		tool_run(TOOL_HAS_ENDED
			"for p in /proc/[0-9]*; do grep -qz \"^VGPU_SHARE=$VGPU_STATE/left/share\" "
			"$p/environ || continue; kill -9 ${p#/proc/}; "
			"until has_ended ${p#/proc/}; do sleep 0.01; done; done");
		assert_says(tool_run("\"$VGPU\" list")->out, "no slices");
		assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
	}
}

static void a_slice_stays_while_its_region_has_a_process(void **state)
{
	struct region region = REGION_NULL;
	unsigned slot;

	tool_run("mkdir \"$VGPU_STATE/kept\"; cd \"$VGPU_STATE/kept\"; : >lock; "
		 "printf 'vgpu-share 1\\ndevice * memory 1g\\nend\\n' >share");
	assert_int_equal(region_open(tool_path("state/kept/region"), &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_says(tool_run("\"$VGPU\" list")->out, "kept");
	assert_int_equal(tool_run("ls \"$VGPU_STATE/kept/region\"")->status, 0);
	region_close(&region);
	assert_says(tool_run("\"$VGPU\" list")->out, "no slices");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

static void what_is_no_slice_is_never_removed(void **state)
{
	tool_run("mkdir -p \"$VGPU_STATE/papers\"; : >\"$VGPU_STATE/papers/region\"; "
		 "mkdir \"$VGPU_STATE/mixed\"; : >\"$VGPU_STATE/mixed/lock\"; "
		 ": >\"$VGPU_STATE/mixed/thesis\"");
	tool_run("\"$VGPU\" run --memory 1g true");
	assert_int_equal(tool_run("test -e \"$VGPU_STATE/papers/region\"")->status, 0);
	assert_int_equal(tool_run("test -e \"$VGPU_STATE/mixed/thesis\"")->status, 0);
	tool_run("rm -r \"$VGPU_STATE\"/*");
}

static void a_state_folder_that_others_can_write_to_is_refused(void **state)
{
	const struct said *said =
		tool_run("mkdir \"$HERE/open\"; chmod 777 \"$HERE/open\"; "
			 "VGPU_STATE=\"$HERE/open\" \"$VGPU\" run --memory 1g true");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "open to other users");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_makes_no_sense_says_what_would),
		cmocka_unit_test(help_tells_of_every_command),
		cmocka_unit_test(the_share_file_says_what_was_granted),
		cmocka_unit_test(without_a_device_the_way_to_a_simulated_one_is_said),
		cmocka_unit_test(the_share_file_says_what_compute_was_granted),
		cmocka_unit_test(the_share_file_says_that_nothing_is_exported),
		cmocka_unit_test(the_share_file_says_that_others_handles_are_opened),
		cmocka_unit_test(where_compute_alone_is_granted_memory_has_no_quota),
		cmocka_unit_test(memory_has_no_quota_where_that_is_said),
		cmocka_unit_test(a_quota_of_memory_can_be_set_where_there_was_none),
		cmocka_unit_test(slices_take_turns_in_a_folder_that_all_can_write_to),
		cmocka_unit_test(without_a_folder_of_turns_there_is_no_line_of_it),
		cmocka_unit_test(the_library_is_loaded_before_what_was_preloaded_already),
		cmocka_unit_test(a_library_that_is_nowhere_is_missed_by_name),
		cmocka_unit_test(the_exit_status_is_the_programs),
		cmocka_unit_test(a_signal_reaches_the_program),
		cmocka_unit_test(nothing_is_left_of_a_slice_that_has_ended),
		cmocka_unit_test(the_region_is_there_before_the_program),
		cmocka_unit_test(who_may_write_no_file_leaves_no_half_of_a_slice),
		cmocka_unit_test(a_name_in_use_is_refused),
		cmocka_unit_test(a_program_without_a_proper_name_gets_a_slice_too),
		cmocka_unit_test(a_slice_outlives_a_vgpu_that_was_killed),
		cmocka_unit_test(a_slice_stays_while_anything_that_was_started_in_it_lives),
		cmocka_unit_test(a_slice_stays_while_its_region_has_a_process),
		cmocka_unit_test(what_is_no_slice_is_never_removed),
		cmocka_unit_test(a_state_folder_that_others_can_write_to_is_refused),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
