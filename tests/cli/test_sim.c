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
#include "tests/cli/tool.h"

/* How much of the device's time is used is not the same each time, nor whether it is metered. */
#define PART "(-|[0-9.]+[^ 0-9a-zA-Z.]) "
#define USED "sed -E 's/ " PART "?(evicted|suspended) / \\2 /; s/ " PART "/ - /'"

static int set_up(void **state)
{
	int r = tool_set_up(state);

	unsetenv("VGPU_LIBDIR");
	unsetenv("LD_LIBRARY_PATH");
	setenv("VGPU_SIM_STATE", tool_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	return r;
}

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

/*
 * The slice "busy" with a tenant that holds 1.8 GiB of device 0 until its vgpu is ended; in between a shell
 * does what is said. What it sees of the machine: TRUTH is what the driver holds for all.
 */
#define TRUTH	 "\"$VGPU_SIM\" truth | awk '/^.none.  *0/ { print $4 $5 }'"
#define LIST	 "\"$VGPU\" list | tr -s ' ' | tail -n 1 | " USED
#define BUSY_ROW "\"$VGPU\" list | tr -s ' ' | grep ^busy | " USED

/* Until a program has said to its file that it holds what it has. */
#define HOLDS(file)                                                                   \
	"tries=0; until grep -q holding \"$HERE/" file "\" || [ $tries = 1500 ]; do " \
	"sleep 0.02; tries=$((tries + 1)); done\n"

/* A second process of the slice, which holds 0.8 GiB of the device. */
#define SECOND                                                             \
	": >\"$HERE/second\"; \"$VGPU\" set busy --memory 4g >/dev/null\n" \
	"VGPU_SHARE=\"$VGPU_STATE/busy/share\" LD_PRELOAD=\"$LIBRARY\" "   \
	"LD_LIBRARY_PATH=\"$DRIVER\" \"$TENANT\" --blocks 1 --hold 60000 " \
	">\"$HERE/second\" & second=$!\n" HOLDS("second")

/* Another slice, with so many blocks of 256 MiB; 552 leave 1.3 GiB of the device. */
#define BIG(blocks)                                                                          \
	": >\"$HERE/big\"; \"$VGPU\" run --sim --memory unlimited --device 0 --name big -- " \
	"\"$TENANT\" --blocks " blocks " --hold 60000 >\"$HERE/big\" & big=$!\n" HOLDS("big")

#define EVICT  "\"$VGPU\" suspend busy --evict; echo $?\n"
#define RESUME "\"$VGPU\" resume busy; echo $?\n"

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

static const struct said *beside_a_tenant(const char *script)
{
	return tool_run(
		": >\"$HERE/tenant\"; \"$VGPU\" run --sim --memory 2g --device 0 "
		"--name busy -- \"$TENANT\" --hold 60000 >\"$HERE/tenant\" & first=$!\n" HOLDS(
			"tenant") "%s\nkill $first; wait $first",
		script);
}

/* What a second process of the slice takes then, though the first has begun with a quota. */
static void a_quota_that_is_taken_away_binds_nobody_any_more(void **state)
{
	/* The test before had a slice, too: for a second it counts as a neighbour, beside which time is metered. */
	const struct said *said = tool_run("sleep 1.2");

	said = beside_a_tenant("\"$VGPU\" set busy --memory unlimited >/dev/null; echo $?\n"
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

static void an_evicted_slice_holds_nothing_and_gets_it_all_back(void **state)
{
	const struct said *said = beside_a_tenant(
		TRUTH "\n\"$VGPU\" suspend busy --evict; echo $?\n" TRUTH "\n" LIST
		      "\n\"$VGPU\" suspend busy --evict; echo $?\n"
		      "\"$VGPU\" resume busy; echo $?\n" TRUTH "\n" LIST
		      "\ngrep -c suspended \"$VGPU_STATE/busy/share\"; ls \"$VGPU_STATE/busy\"");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out,
		"1.8GiB\n0\n0B\nbusy 0 H200 1 0 2G 0 evicted evicted 1.8G\n0\n0\n1.8GiB\n"
		"busy 0 H200 1 1.8G 2G 88 - context 518M plain "
		"1.2G\n0\nlock\nregion\nshare\nsim\n");
	assert_string_equal(tool_run("ls -A \"$VGPU_STATE\"")->out, "");
}

/* It is as alive as any: its memory is that of the process. */
static void a_process_whose_main_has_ended_is_evicted_like_any_other(void **state)
{
	const struct said *said = tool_run(
		": >\"$HERE/tenant\"; \"$VGPU\" run --sim --memory 2g --device 0 --name busy -- "
		"\"$MAIN_ENDED\" >\"$HERE/tenant\" & first=$!\n" HOLDS("tenant") TRUTH
		"\n" EVICT TRUTH "\n" RESUME TRUTH "\nkill $first; wait $first");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "1.5GiB\n0\n0B\n0\n1.5GiB\n");
}

/* By its mappings and its environment alone, as of a container's. */
static void a_process_whose_main_has_ended_is_found_and_told_of(void **state)
{
	const struct said *said = tool_run(
		"mkdir \"$HERE/own\"; printf 'vgpu-share 1\nslice own\nregion %%s/own/region\n"
		"device * memory 2g\nend\n' \"$HERE\" >\"$HERE/own/share\"\n: >\"$HERE/tenant\"\n"
		"VGPU_SHARE=\"$HERE/own/share\" LD_PRELOAD=\"$LIBRARY\" "
		"LD_LIBRARY_PATH=\"$DRIVER\" "
		"\"$MAIN_ENDED\" >\"$HERE/tenant\" & first=$!\n" HOLDS(
			"tenant") "env -u VGPU_STATE \"$VGPU\" list --all | tr -s ' ' | grep '^own "
				  "' | cut -d ' ' -f 3-5\n"
				  "\"$VGPU\" doctor $first | grep -o 'any device: memory 2G'\n"
				  "kill $first; wait $first 2>/dev/null; rm -r \"$HERE/own\"");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "1 1.5G 2G\nany device: memory 2G\n");
}

/* Programs of the slice, and beside it, that do what they read: each says what the driver answered. */
#define CLIENTS                                                                                \
	"pid=$(\"$VGPU\" list --processes | awk '/busy/ { print $4; exit }')\n"                \
	"beside() { env LD_LIBRARY_PATH=\"$DRIVER\" \"$CLIENT\" linked | cut -d ' ' -f 1; }\n" \
	"within() { env VGPU_SHARE=\"$VGPU_STATE/busy/share\" LD_PRELOAD=\"$LIBRARY\" "        \
	"LD_LIBRARY_PATH=\"$DRIVER\" \"$CLIENT\" linked | cut -d ' ' -f 1; }\n"

/* Another process of the slice would have the driver bring the first one's back, and takes what the books say is free. */
static void an_evicted_slice_does_not_restore_itself(void **state)
{
	const struct said *said = beside_a_tenant(CLIENTS EVICT
		"{ printf 'init\\nmove restore %s\\nmove unlock %s\\nprimary 0\\nalloc a 1g\\n' "
		"$pid $pid; sleep 0.5; " TRUTH " >&2; } | within\n" RESUME TRUTH);

	assert_says(said->err, "a checkpoint is refused");
	assert_says(said->err, "the slice is suspended");
	assert_says(said->err, "\n1.5GiB\n");
	assert_string_equal(said->out, "0\n0\n800\n800\n0\n0\n0\n1.8GiB\n");
}

/* One without the library is not kept from it; who evicts finds it out, and the books follow. */
static void who_is_restored_while_it_is_evicted_stays_in_the_books(void **state)
{
	const struct said *said = beside_a_tenant(CLIENTS
		"\"$VGPU_SIM\" inject cuCheckpointProcessGetState --nth 2 --delay-ms 3000\n"
		"\"$VGPU\" suspend busy --evict --sim & evicting=$!\n"
		"tries=0; until [ \"$(printf 'init\\nmove restore %s\\n' $pid | beside | tail -n "
		"1)\" = 0 ] || [ $tries = 500 ]; do sleep 0.02; tries=$((tries + 1)); done\n"
		"wait $evicting; echo $?; \"$VGPU_SIM\" inject --clear >/dev/null\n"
		"ls \"$VGPU_STATE/busy\" | grep -c evicted\n" TRUTH "\n" LIST "\n" RESUME);

	assert_says(said->err, "another process has brought its memory back");
	assert_says(said->out, "1\n0\n1.8GiB\nbusy 0 H200 1 1.8G 2G 88 suspended context 518M "
			       "plain 1.2G\n0\n");
}

/* Somebody has let the slice go on meanwhile: not all that it holds would be away. */
static void memory_that_is_taken_while_it_is_evicted_is_told(void **state)
{
	const struct said *said = beside_a_tenant(
		"\"$VGPU_SIM\" inject cuCheckpointProcessGetState --nth 1 --delay-ms 3000\n"
		"\"$VGPU\" suspend busy --evict --sim & evicting=$!\n"
		"tries=0; until [ -e \"$VGPU_STATE/busy/evicted\" ] || [ $tries = 500 ]; do sleep "
		"0.02; tries=$((tries + 1)); done\n"
		"sed -i '/^suspended$/d' \"$VGPU_STATE/busy/share\"\n" SECOND
		"wait $evicting; echo $?; \"$VGPU_SIM\" inject --clear >/dev/null\n" TRUTH
		"\nls \"$VGPU_STATE/busy\" | grep -c evicted\nkill $second; wait $second "
		"2>/dev/null");

	assert_says(said->err, "holds memory that was not moved, or was taken meanwhile");
	assert_string_equal(said->out, "rule 0\n1\n2.5GiB\n0\n");
}

/* What root has begun a user ends, and begins again. */
static void a_slice_that_root_evicts_stays_its_users(void **state)
{
	const struct said *said = tool_run(
		"as='setpriv --reuid 54321 --regid 54321 --clear-groups --'\n"
		"$as test -x \"$VGPU\" 2>/dev/null || exit 77\n"
		"chmod 711 \"$HERE\"; mkdir -m 700 \"$HERE/his\"; chown 54321 \"$HERE/his\"; "
		": >\"$HERE/tenant\"\n"
		"export VGPU_STATE=\"$HERE/his\" VGPU_SIM_STATE=\"$HERE/his/machine\"\n"
		"$as \"$VGPU\" run --sim --memory 2g --device 0 --name busy -- \"$TENANT\" --hold "
		"60000 >\"$HERE/tenant\" & first=$!\n" HOLDS(
			"tenant") "\"$VGPU\" suspend busy --evict --sim; echo $?; stat -c %%u "
				  "\"$VGPU_STATE/busy/evicted\"\n"
				  "for word in suspend resume suspend; do $as \"$VGPU\" $word busy "
				  "$([ $word = resume ] || echo --evict); echo $?; done\n"
				  "\"$VGPU\" resume busy --sim; echo $?; kill $first; wait $first");

	if (said->status == 77)
		skip();
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n54321\n0\n0\n0\n0\n");
}

static void suspended_alone_it_keeps_its_memory(void **state)
{
	const struct said *said = beside_a_tenant("\"$VGPU\" suspend busy; echo $?\n" TRUTH
						  "\n" LIST "\n\"$VGPU\" resume busy; echo $?");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n1.8GiB\nbusy 0 H200 1 1.8G 2G 88 suspended context 518M "
				       "plain 1.2G\n0\n");
}

static void a_process_that_cannot_be_evicted_leaves_all_where_they_were(void **state)
{
	static const char *const functions[] = {"cuCheckpointProcessGetState",
		"cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint"};
	char script[2048];

	/* Of two processes it is the second that fails. */
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const struct said *said;

		snprintf(script, sizeof(script),
			SECOND "before=$(" LIST ")\n"
			       "\"$VGPU_SIM\" inject %s --nth 2 --code CUDA_ERROR_NOT_SUPPORTED\n"
			       "\"$VGPU\" suspend busy --evict; echo $?\n"
			       "\"$VGPU_SIM\" inject --clear >/dev/null\n"
			       "ls \"$VGPU_STATE/busy\" | grep -c evicted\n" LIST
			       " | grep -c ' suspended '\n"
			       "\"$VGPU\" resume busy; echo $?\n"
			       "[ \"$before\" = \"$(" LIST ")\" ] && echo same\n"
			       "kill $second; wait $second",
			functions[i]);
		said = beside_a_tenant(script);
		assert_says(said->err, "slice 'busy' is suspended, but its memory stays where it "
				       "is: process ");
		assert_says(said->err, "CUDA_ERROR_NOT_SUPPORTED");
		assert_says(said->out, "1\n0\n1\n0\nsame\n");
	}
}

/* The driver loses a process that it is to restore without room, so it is not asked. */
static void a_slice_whose_place_was_taken_stays_suspended_and_comes_back_later(void **state)
{
	const struct said *said = beside_a_tenant(SECOND EVICT BIG(
		"1000") "\"$VGPU_SIM\" counts --clear; cp \"$VGPU_STATE/busy/share\" "
			"\"$HERE/before\"\n" RESUME
			"\"$VGPU_SIM\" counts cuCheckpointProcessRestore\n" BUSY_ROW
			"\ndiff \"$HERE/before\" \"$VGPU_STATE/busy/share\" && ls "
			"\"$VGPU_STATE/busy\"\n"
			"kill $big; wait $big\n" RESUME LIST "\nkill $second; wait $second");

	assert_says(said->err, "slice 'busy' is not resumed: no free memory for process ");
	assert_says(said->err, " and 1 more: device GPU-");
	assert_says(said->err, " MiB free, and ");
	assert_string_equal(said->out,
		"0\n1\n           0 cuCheckpointProcessRestore\n"
		"busy 0 H200 2 0 4G 0 evicted evicted 2.5G\nevicted\nlock\nregion\nshare\nsim\n0\n"
		"busy 0 H200 2 2.5G 4G 63 - context 1G plain 1.5G\n");
}

/* Of two processes one has room; NVML's first answer, about both together, is not to be had. */
static void who_has_no_room_any_more_keeps_no_other_away_and_comes_back_later(void **state)
{
	const struct said *said = beside_a_tenant(SECOND EVICT BIG(
		"552") "\"$VGPU_SIM\" inject nvmlDeviceGetMemoryInfo --nth 1 --code "
		       "UNKNOWN\n" RESUME "\"$VGPU_SIM\" inject --clear >/dev/null\n" BUSY_ROW
		       "\nkill $big; wait $big\n" RESUME LIST "\nkill $second; wait $second");

	assert_says(said->err, "slice 'busy' is not resumed: no free memory for process ");
	assert_says(said->err, "(tenant): device GPU-");
	assert_string_equal(said->out, "0\nrule 0\n1\nbusy 0 H200 2 774M 4G 19 evicted context "
				       "518M plain 256M evicted 1.8G\n0\n"
				       "busy 0 H200 2 2.5G 4G 63 - context 1G plain 1.5G\n");
}

static void a_process_that_the_driver_lost_keeps_no_other_away(void **state)
{
	/* Nobody says that there is no room. */
	const struct said *said = beside_a_tenant(SECOND EVICT BIG(
		"552") "\"$VGPU_SIM\" inject nvmlInit_v2 --every --code UNKNOWN\n" RESUME
		       "\"$VGPU_SIM\" inject --clear >/dev/null\n" BUSY_ROW
		       "\nkill $big; wait $big\n"
		/* with room, too, it stays away, until it ends */
		RESUME LIST
		       "\nkill -9 $(\"$VGPU\" list --processes | awk '/busy/ { print $4; exit }')\n"
		       "wait $first; " RESUME LIST
		       "\ngrep -c suspended \"$VGPU_STATE/busy/share\"\n" TRUTH
		       "\nkill $second; wait $second");

	assert_says(said->err, "slice 'busy' is not resumed: process ");
	assert_says(said->err,
		"(tenant): the driver cannot bring its memory back, now or later; end "
		"the process, and resume again: CUDA_ERROR_OUT_OF_MEMORY");
	assert_says(said->err, "resume again: CUDA_ERROR_OPERATING_SYSTEM");
	assert_string_equal(said->out,
		"0\nrule 0\n1\nbusy 0 H200 2 774M 4G 19 evicted context 518M plain 256M evicted "
		"1.8G\n"
		"1\nbusy 0 H200 2 774M 4G 19 evicted context 518M plain 256M evicted 1.8G\n"
		"0\nbusy 0 H200 1 774M 4G 19 - context 518M plain 256M\n0\n774.0MiB\n");
}

/* Nobody else is there who could make room, so none is asked for beyond what it takes. */
static void a_slice_that_filled_its_device_comes_back(void **state)
{
	const struct said *said = tool_run(BIG(
		"1000") "\"$VGPU\" suspend big --evict; echo $?\n" TRUTH
			"\n\"$VGPU\" resume big --sim; echo $?\n" TRUTH "\nkill $big; wait $big");

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n0B\n0\n139.8GiB\n");
}

static void an_evicted_process_that_dies_takes_it_along(void **state)
{
	const struct said *said = beside_a_tenant(
		"\"$VGPU\" suspend busy --evict; echo $?\n"
		"kill -9 $(\"$VGPU\" list --processes | awk '/busy/ { print $4 }')\n"
		"wait $first; ls -A \"$VGPU_STATE\"\n" TRUTH);

	assert_string_equal(said->out, "0\n0B\n");
}

static void what_a_killed_vgpu_left_locked_is_brought_back(void **state)
{
	const struct said *said = beside_a_tenant(
		"\"$VGPU_SIM\" counts --clear\n"
		"\"$VGPU_SIM\" inject cuCheckpointProcessCheckpoint --every --delay-ms 60000\n"
		"\"$VGPU\" suspend busy --evict --sim & killed=$!\n"
		"tries=0; until \"$VGPU_SIM\" counts cuCheckpointProcessCheckpoint | grep -qw 1 || "
		"[ $tries = 1500 ]; do sleep 0.02; tries=$((tries + 1)); done\n"
		"kill -9 $killed; wait $killed\n"
		"\"$VGPU_SIM\" inject --clear >/dev/null\n"
		"ls \"$VGPU_STATE/busy\" | grep evicted\n"
		"\"$VGPU\" resume busy; echo $?\n"
		"ls \"$VGPU_STATE/busy\" | grep -c evicted\n"
		"\"$VGPU\" suspend busy --evict; echo $?\n"
		"\"$VGPU\" resume busy; echo $?\n" LIST);

	assert_says(said->out, "evicted\n0\n0\n0\n0\n"
			       "busy 0 H200 1 1.8G 2G 88 - context 518M plain 1.2G\n");
}

static void of_a_suspend_and_a_resume_at_once_one_comes_after_the_other(void **state)
{
	const struct said *said = beside_a_tenant(
		"for i in 1 2 3 4 5; do \"$VGPU\" suspend busy --evict --sim & a=$!\n"
		"\"$VGPU\" resume busy --sim & b=$!; wait $a; wait $b; done\n"
		"\"$VGPU\" resume busy; echo $?\n" TRUTH "\n" LIST);

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n1.8GiB\n"
				       "busy 0 H200 1 1.8G 2G 88 - context 518M plain 1.2G\n");
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
		cmocka_unit_test(an_evicted_slice_does_not_restore_itself),
		cmocka_unit_test(who_is_restored_while_it_is_evicted_stays_in_the_books),
		cmocka_unit_test(memory_that_is_taken_while_it_is_evicted_is_told),
		cmocka_unit_test(an_evicted_slice_holds_nothing_and_gets_it_all_back),
		cmocka_unit_test(a_process_whose_main_has_ended_is_evicted_like_any_other),
		cmocka_unit_test(a_process_whose_main_has_ended_is_found_and_told_of),
		cmocka_unit_test(a_slice_that_root_evicts_stays_its_users),
		cmocka_unit_test(suspended_alone_it_keeps_its_memory),
		cmocka_unit_test(a_process_that_cannot_be_evicted_leaves_all_where_they_were),
		cmocka_unit_test(
			a_slice_whose_place_was_taken_stays_suspended_and_comes_back_later),
		cmocka_unit_test(who_has_no_room_any_more_keeps_no_other_away_and_comes_back_later),
		cmocka_unit_test(a_process_that_the_driver_lost_keeps_no_other_away),
		cmocka_unit_test(a_slice_that_filled_its_device_comes_back),
		cmocka_unit_test(an_evicted_process_that_dies_takes_it_along),
		cmocka_unit_test(what_a_killed_vgpu_left_locked_is_brought_back),
		cmocka_unit_test(
			a_limit_that_is_set_and_a_suspension_are_kept_by_a_program_that_runs),
		cmocka_unit_test(of_a_suspend_and_a_resume_at_once_one_comes_after_the_other),
		cmocka_unit_test(
			a_first_use_under_a_closed_umask_leaves_a_machine_that_can_be_used),
	};

	return cmocka_run_group_tests(tests, set_up, tool_tear_down);
}
