/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor: what it finds in regions and in processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "region/turn.h"
#include "tests/cli/tool.h"

#define MIB  (UINT64_C(1) << 20)
#define UUID "GPU-00000000-1111-2222-3333-444444444444"

/* A process with the library, or what stands for it, that looks at itself. */
#define LOOK "\"$VGPU\" run --memory 1g -- sh -c '\"$VGPU\" doctor %s $$; echo $? '"

struct slice {
	struct region region;
	unsigned slot, device;
};

/* The slice "one", of which this process, which has no library, holds so much. */
static void make(struct slice *s, uint64_t bytes)
{
	tool_run("mkdir -p \"$VGPU_STATE/one\"; cd \"$VGPU_STATE/one\"; test -e share || "
		 "printf 'vgpu-share 1\\nslice one\\nend\\n' >share");
	assert_int_equal(region_open(tool_path("state/one/region"), &s->region), 0);
	assert_int_equal(slot_claim(&s->region, &s->slot), 0);
	assert_int_equal(region_device(&s->region, UUID, &s->device), 0);
	s->region.file->hami.limit_bytes[s->device] = 2048 * MIB;
	s->region.file->own.devices[s->device].refusal_count = 3;
	s->region.file->own.devices[s->device].drift_count = 4;
	s->region.file->own.slots[s->slot].notes = REGION_NOTE_NO_NVML;
	ledger_charge_anyway(s->region.file, s->slot, s->device, ledger_units(bytes));
}

static void drop(struct slice *s)
{
	region_close(&s->region);
	tool_run("rm -r \"$VGPU_STATE/one\"");
}

static void nothing_is_wrong_where_nothing_is(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" doctor");

	assert_int_equal(said->status, 0);
	assert_says(said->out, "There are no slices");
	assert_says(said->out, "No problems.");
}

static void a_slice_shows_its_counters_and_its_processes(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s, 1536 * MIB);
	said = tool_run("\"$VGPU\" doctor one");
	assert_int_equal(said->status, 1);
	assert_says(said->out, "slice one\n");
	assert_says(said->out, "quota 2G, used 1.5G; 3 refusals, 4 corrections\n");
	assert_says(said->out, "library      none\n");
	assert_says(said->out, "has no figure for it: usage is what its calls took");
	assert_says(said->out, "Problems:\n  process ");
	assert_says(said->out, "libvgpu.so is not loaded");
	assert_null(strstr(said->out, "over its quota"));
	drop(&s);
}

static void a_slice_over_its_quota_is_told(void **state)
{
	struct slice s;

	make(&s, 3000 * MIB);
	assert_says(tool_run("\"$VGPU\" doctor")->out,
		"  slice one: device " UUID " is over its quota\n");
	drop(&s);
}

static void a_process_is_found_in_its_slice(void **state)
{
	char expected[64];
	struct slice s;

	make(&s, 64 * MIB);
	snprintf(expected, sizeof(expected), "  process %d ", (int)getpid());
	assert_says(tool_run("\"$VGPU\" doctor %d", (int)getpid())->out, expected);
	drop(&s);
}

static void json_is_json(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s, 64 * MIB);
	said = tool_run("\"$VGPU\" doctor --json | python3 -c '"
			"import json, sys\n"
			"d = json.load(sys.stdin)\n"
			"v, p = d[\"slices\"][0], d[\"processes\"][0]\n"
			"print(v[\"name\"], v[\"devices\"][0][\"refusals\"],\n"
			"      v[\"devices\"][0][\"corrections\"], p[\"pid\"], p[\"slice\"],\n"
			"      p[\"nvml\"], p[\"library\"], len(d[\"problems\"]))'");
	assert_string_equal(said->err, "");
	assert_says(said->out, "one 3 4 ");
	assert_says(said->out, " one none None 1\n");
	drop(&s);
}

static void a_process_with_the_library_and_a_share_is_well(void **state)
{
	const struct said *said = tool_run(LOOK, "");

	assert_says(said->out, "is in no slice\n");
	assert_says(said->out, "/libvgpu.so\n");
	assert_says(said->out, "share        /");
	assert_says(said->out, "  VGPU_SHARE=/");
	assert_says(said->out, "No problems.\n0\n");
	said = tool_run(LOOK " | sed '$d' | python3 -m json.tool", "--json");
	assert_int_equal(said->status, 0);
}

/* The same with more options of vgpu run. */
#define LOOK_WITH(options) \
	"\"$VGPU\" run --memory 1g " options " -- sh -c '\"$VGPU\" doctor %s $$; echo $? '"

static void limits_are_told_with_where_they_stand(void **state)
{
	const struct said *said = tool_run(LOOK_WITH("--cores 30 --cap 50"), "");

	assert_says(said->out, ": memory 1G from /");
	assert_says(said->out, "/share, compute 30-50% from /");
	assert_says(said->out, "preload      LD_PRELOAD\n");
	assert_says(said->out, "entry points by name, by dlsym, by cuGetProcAddress\n");
	assert_says(said->out, "driver       not loaded\n");
	assert_says(said->out, "/turns\n                 with 0 other slices just now\n");
	assert_null(strstr(said->out, "Notes:"));
	assert_says(said->out, "No problems.\n0\n");
	/* the environment's are smaller */
	said = tool_run("CUDA_DEVICE_SM_LIMIT=20 GPU_CORE_UTILIZATION_POLICY=force "
			"CUDA_DEVICE_MEMORY_LIMIT=512m " LOOK_WITH("--cores 30"),
		"");
	assert_says(said->out, ": memory 512M from CUDA_DEVICE_MEMORY_LIMIT, "
			       "compute 20% from CUDA_DEVICE_SM_LIMIT\n");
	/* what is lent by one is not lent by the other */
	said = tool_run("CUDA_DEVICE_SM_LIMIT=20 " LOOK_WITH("--cores 30"), "");
	assert_says(said->out, "compute 20-30% from CUDA_DEVICE_SM_LIMIT");
}

static void what_cannot_be_kept_is_told_and_is_not_wrong(void **state)
{
	const struct said *said =
		tool_run("VGPU_TURNS=/nowhere/turns " LOOK_WITH("--cores 30"), "");

	assert_says(said->out, "/nowhere/turns cannot be read (No such file or directory)");
	assert_says(said->out, "Notes:\n");
	assert_says(said->out, "No problems.\n");
	said = tool_run("CUDA_DEVICE_SM_LIMIT=20 GPU_CORE_UTILIZATION_POLICY=disable " LOOK, "");
	assert_says(said->out, "disable, so CUDA_DEVICE_SM_LIMIT is not kept");
	said = tool_run("CUDA_MPS_PIPE_DIRECTORY=/tmp/mps " LOOK_WITH("--cores 30"), "");
	assert_says(said->out, "it is told to use MPS");
	said = tool_run("\"$VGPU\" run --memory 1g --cores 10 --name still -- sh -c "
			"'\"$VGPU\" suspend still; unset VGPU_TURNS; \"$VGPU\" doctor $$; true'");
	assert_says(said->out, "its slice is suspended by /");
	said = tool_run(
		"VGPU_TURNS= CUDA_DEVICE_SM_LIMIT=20 LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" "
		"sh -c '\"$VGPU\" doctor $$; true'");
	assert_says(said->out, "it has no folder for time slices");
	assert_says(said->out, "any device: memory none, compute 20% from CUDA_DEVICE_SM_LIMIT");
}

static void peers_in_time_slices_are_counted(void **state)
{
	static struct turn one, two;
	const struct said *said;

	assert_int_equal(mkdir(tool_path("records"), 01777), 0);
	assert_int_equal(turn_open(&one, tool_path("records"), UUID, "one", 0, clock_now_ns()), 0);
	assert_int_equal(turn_open(&two, tool_path("records"), UUID, "two", 0, clock_now_ns()), 0);
	said = tool_run(
		"printf 'vgpu-share 1\\nslice one\\nturns %%s/records\\n"
		"device " UUID " memory 1g cores 30\\nend\\n' \"$HERE\" >\"$HERE/turning\"; "
		": >\"$HERE/records/" UUID "/three\"; VGPU_SHARE=\"$HERE/turning\" "
		"LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" sh -c '\"$VGPU\" doctor $$; true'");
	turn_close(&one);
	turn_close(&two);
	assert_says(said->out, "with 2 other slices just now\n");
}

static void json_tells_limits_and_notes(void **state)
{
	const struct said *said = tool_run(
		"CUDA_MPS_PIPE_DIRECTORY=/tmp/mps " LOOK_WITH(
			"--cores 30 --cap 50") " | sed '$d' | "
					       "python3 -c '\nimport json, sys\nd = "
					       "json.load(sys.stdin)\n"
					       "p = d[\"processes\"][0]; l = p[\"limits\"][0]\n"
					       "print(l[\"memory_bytes\"] >> 20, "
					       "l[\"cores_permille\"], l[\"cap_permille\"],\n"
					       "    l[\"compute_from\"][-6:], p[\"preloaded_by\"], "
					       "p[\"time_slice_peers\"],\n"
					       "    len(d[\"notes\"]), len(d[\"problems\"]))'",
		"--json");

	assert_string_equal(said->out, "1024 300 500 /share LD_PRELOAD 0 1 0\n");
}

static void a_slice_shows_its_compute_time(void **state)
{
	struct slice s;

	make(&s, 64 * MIB);
	s.region.file->own.compute[s.device].limits = UINT64_C(300) << 48 | UINT64_C(500) << 32 |
						      REGION_COMPUTE_LIMITED | REGION_COMPUTE_TURNS;
	assert_says(
		tool_run("\"$VGPU\" doctor one")->out, "    compute 0.0/30-50%, in time slices\n");
	drop(&s);
}

static void options_that_are_not_understood_are_told(void **state)
{
	const struct said *said;

	said = tool_run("CUDA_DEVICE_MEMORY_LIMIT_3=10XB CUDA_OVERSUBSCRIBE=yes " LOOK, "");
	assert_says(said->out, "the value of CUDA_DEVICE_MEMORY_LIMIT_<i> is not understood");
	assert_says(said->out, "the value of CUDA_OVERSUBSCRIBE is not understood");
	assert_says(said->out, "so all memory is refused\n1\n");
	assert_says(said->out, "CUDA_DEVICE_MEMORY_LIMIT_3=10XB\n");
}

static void a_share_that_is_broken_is_told_with_its_line(void **state)
{
	const struct said *said;

	tool_run("printf 'vgpu-share 1\\ndevice * memory 10XB\\nend\\n' >\"$HERE/broken\"");
	said = tool_run("VGPU_SHARE=\"$HERE/broken\" LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" "
			"sh -c '\"$VGPU\" doctor $$'");
	assert_int_equal(said->status, 1);
	assert_says(said->out, "/broken, line 2: ");
}

static void a_process_without_the_library_is_bound_by_nothing(void **state)
{
	const struct said *said = tool_run("sh -c '\"$VGPU\" doctor $$; true'");

	assert_says(said->out, "library      none\n");
	assert_says(said->out, "so no quota binds it");
	said = tool_run("LD_PRELOAD=\"$VGPU_LIBDIR/libvgpu.so\" sh -c '\"$VGPU\" doctor $$; true'");
	assert_says(said->out, "no share file and no option sets a quota");
}

static void what_is_not_there_is_a_failure(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" doctor nobody");

	assert_int_equal(said->status, 1);
	assert_says(said->err, "there is no slice 'nobody'");
	said = tool_run("\"$VGPU\" doctor 2147483647");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "there is no process 2147483647");
	assert_int_equal(tool_run("\"$VGPU\" doctor a b")->status, 2);
	assert_int_equal(tool_run("\"$VGPU\" doctor --sim")->status, 2);
}

static void a_library_before_ours_is_told(void **state)
{
	const struct said *said =
		tool_run("export CUDA_DEVICE_MEMORY_LIMIT=1g; ours=\"$VGPU_LIBDIR/libvgpu.so\"; "
			 "for list in \"libc.so.6 $ours\" \"libm.so.6:$ours\" \"$ours:libc.so.6\" "
			 "\"libm.so.6:/lib/../lib64/libc.so.6:$ours\"; do "
			 "LD_PRELOAD=\"$list\" sh -c '\"$VGPU\" doctor $$' 2>/dev/null | "
			 "sed -n 's/.*is not first: /first: /p'; echo; done");

	assert_string_equal(said->out, "first: LD_PRELOAD names libc.so.6 before it, so driver "
				       "functions go past it\n\n\n\n"
				       "first: LD_PRELOAD names /lib/../lib64/libc.so.6 before it, "
				       "so driver functions go past "
				       "it\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_wrong_where_nothing_is),
		cmocka_unit_test(a_slice_shows_its_counters_and_its_processes),
		cmocka_unit_test(a_slice_over_its_quota_is_told),
		cmocka_unit_test(a_process_is_found_in_its_slice),
		cmocka_unit_test(json_is_json),
		cmocka_unit_test(a_process_with_the_library_and_a_share_is_well),
		cmocka_unit_test(limits_are_told_with_where_they_stand),
		cmocka_unit_test(what_cannot_be_kept_is_told_and_is_not_wrong),
		cmocka_unit_test(peers_in_time_slices_are_counted),
		cmocka_unit_test(json_tells_limits_and_notes),
		cmocka_unit_test(a_slice_shows_its_compute_time),
		cmocka_unit_test(options_that_are_not_understood_are_told),
		cmocka_unit_test(a_share_that_is_broken_is_told_with_its_line),
		cmocka_unit_test(a_process_without_the_library_is_bound_by_nothing),
		cmocka_unit_test(a_library_before_ours_is_told),
		cmocka_unit_test(what_is_not_there_is_a_failure),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
