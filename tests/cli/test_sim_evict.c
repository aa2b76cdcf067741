/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu suspend --evict and resume on the simulated node: what the slice holds goes to the host's memory and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/cli/sim.h"

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

static void an_evicted_slice_holds_nothing_and_gets_it_all_back(void **state)
{
	const struct said *said = sim_beside_a_tenant(
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
	const struct said *said = sim_beside_a_tenant(CLIENTS EVICT
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
	const struct said *said = sim_beside_a_tenant(CLIENTS
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
	const struct said *said = sim_beside_a_tenant(
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
	const struct said *said = sim_beside_a_tenant("\"$VGPU\" suspend busy; echo $?\n" TRUTH
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
		said = sim_beside_a_tenant(script);
		assert_says(said->err, "slice 'busy' is suspended, but its memory stays where it "
				       "is: process ");
		assert_says(said->err, "CUDA_ERROR_NOT_SUPPORTED");
		assert_says(said->out, "1\n0\n1\n0\nsame\n");
	}
}

/* The driver loses a process that it is to restore without room, so it is not asked. */
static void a_slice_whose_place_was_taken_stays_suspended_and_comes_back_later(void **state)
{
	const struct said *said = sim_beside_a_tenant(SECOND EVICT BIG(
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
	const struct said *said = sim_beside_a_tenant(SECOND EVICT BIG(
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
	const struct said *said = sim_beside_a_tenant(SECOND EVICT BIG(
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
	const struct said *said = sim_beside_a_tenant(
		"\"$VGPU\" suspend busy --evict; echo $?\n"
		"kill -9 $(\"$VGPU\" list --processes | awk '/busy/ { print $4 }')\n"
		"wait $first; ls -A \"$VGPU_STATE\"\n" TRUTH);

	assert_string_equal(said->out, "0\n0B\n");
}

static void what_a_killed_vgpu_left_locked_is_brought_back(void **state)
{
	const struct said *said = sim_beside_a_tenant(
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
	const struct said *said = sim_beside_a_tenant(
		"for i in 1 2 3 4 5; do \"$VGPU\" suspend busy --evict --sim & a=$!\n"
		"\"$VGPU\" resume busy --sim & b=$!; wait $a; wait $b; done\n"
		"\"$VGPU\" resume busy; echo $?\n" TRUTH "\n" LIST);

	assert_string_equal(said->err, "");
	assert_string_equal(said->out, "0\n1.8GiB\n"
				       "busy 0 H200 1 1.8G 2G 88 - context 518M plain 1.2G\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(of_a_suspend_and_a_resume_at_once_one_comes_after_the_other),
	};

	return cmocka_run_group_tests(tests, sim_set_up, tool_tear_down);
}
