/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu list: regions made by hand, looked at from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

#define MIB  (UINT64_C(1) << 20)
#define UUID "GPU-00000000-1111-2222-3333-444444444444"

struct slice {
	struct region region;
	char path[512];
	unsigned slot, device;
};

static void hold(struct slice *s, enum charge_kind kind, uint64_t bytes)
{
	assert_int_equal(ledger_charge(s->region.file, s->slot, s->device, ledger_units(bytes),
				 LEDGER_NO_LIMIT),
		0);
	ledger_note(s->region.file, s->slot, s->device, kind, (int64_t)bytes);
}

/* A slice of which this process holds 1.5 GiB: a quota of 2 GiB, one device. */
static void make(struct slice *s, const char *path)
{
	snprintf(s->path, sizeof(s->path), "%s", path);
	assert_int_equal(region_open(s->path, &s->region), 0);
	assert_int_equal(slot_claim(&s->region, &s->slot), 0);
	assert_int_equal(region_device(&s->region, UUID, &s->device), 0);
	s->region.file->hami.limit_bytes[s->device] = 2048 * MIB;
	hold(s, CHARGE_CONTEXT, 512 * MIB);
	hold(s, CHARGE_PLAIN, 1000 * MIB);
	hold(s, CHARGE_POOL, 24 * MIB);
}

static void drop(struct slice *s)
{
	region_close(&s->region);
	unlink(s->path);
}

static void a_machine_without_slices_is_said_to_be_one(void **state)
{
	const struct said *said = tool_run("\"$VGPU\" list");

	assert_int_equal(said->status, 0);
	assert_says(said->out, "There are no slices");
	said = tool_run("\"$VGPU\" list --json | python3 -c 'import json, sys; "
			"print(json.load(sys.stdin)[\"slices\"])'");
	assert_string_equal(said->out, "[]\n");
}

static void a_region_shows_what_its_processes_hold(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("one.cache"));
	said = tool_run("\"$VGPU\" list --region \"$HERE/one.cache\" | tr -s ' '");
	assert_string_equal(said->out,
		"SLICE DEVICE PROCESSES USED QUOTA % COMPUTE USED FOR\n"
		"one " UUID " 1 1.5G 2G 75 - context 512M plain 1000M pool 24M\n");
	assert_string_equal(said->err, "");
	drop(&s);
}

static void meter(struct slice *s, uint64_t state)
{
	struct region_compute *c = &s->region.file->own.compute[s->device];

	atomic_store(&c->limits,
		UINT64_C(300) << 48 | UINT64_C(500) << 32 | UINT64_C(200) << 16 | 2 << 8 | state);
	atomic_store(&c->busy_ns, 7000000000);
	atomic_store(&c->launches, 12);
	atomic_store(&c->budget_wait_ns, 13);
	atomic_store(&c->turn_wait_ns, 14);
	atomic_store(&c->lent_ns, 15);
}

static void compute_time_is_shown_beside_what_is_granted(void **state)
{
	struct slice s;

	make(&s, tool_path("one.cache"));
	meter(&s, REGION_COMPUTE_LIMITED);
	assert_says(tool_run("\"$VGPU\" list --region \"$HERE/one.cache\" | tr -s ' '")->out,
		" 75 0.0/30-50% context ");
	meter(&s, REGION_COMPUTE_LIMITED | REGION_COMPUTE_SUSPENDED);
	assert_says(tool_run("\"$VGPU\" list --region \"$HERE/one.cache\" | tr -s ' '")->out,
		" 75 0.0/30-50% suspended context ");
	meter(&s, REGION_COMPUTE_BLOCKED);
	assert_says(tool_run("\"$VGPU\" list --region \"$HERE/one.cache\" | tr -s ' '")->out,
		" blocked context ");
	drop(&s);
}

static void json_tells_compute_time_in_figures(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("one.cache"));
	meter(&s, REGION_COMPUTE_LIMITED | REGION_COMPUTE_TURNS);
	said = tool_run(
		"\"$VGPU\" list --json --region \"$HERE/one.cache\" | python3 -c '"
		"import json, sys\n"
		"c = json.load(sys.stdin)[\"slices\"][0][\"devices\"][0][\"compute\"]\n"
		"print(*[c[k] for k in (\"cores_percent\", \"cap_percent\", \"weight\",\n"
		"    \"priority\", \"state\", \"has_time_slices\", \"busy_ns\", \"lent_ns\",\n"
		"    \"budget_wait_ns\", \"time_slice_wait_ns\", \"launches\", \"used_percent\",\n"
		"    \"launches_per_s\")])'");
	assert_string_equal(said->err, "");
	assert_string_equal(
		said->out, "30.0 50.0 200 2 metered True 7000000000 15 13 14 12 0.0 0.0\n");
	drop(&s);
}

static void what_was_evicted_is_shown_and_not_in_use(void **state)
{
	struct slice s;

	make(&s, tool_path("one.cache"));
	ledger_uncharge(s.region.file, s.slot, s.device, ledger_units(1536 * MIB));
	s.region.file->own.slots[s.slot].evicted_bytes[s.device] = 1536 * MIB;
	assert_says(tool_run("\"$VGPU\" list --region \"$HERE/one.cache\" | tr -s ' '")->out,
		" 1 0 2G 0 evicted evicted 1.5G\n");
	assert_says(tool_run("\"$VGPU\" list --json --region \"$HERE/one.cache\"")->out,
		"\"evicted_bytes\": 1610612736");
	drop(&s);
}

static void limits_of_a_slice_that_meters_nothing_are_its_shares(void **state)
{
	struct slice s;

	tool_run("mkdir \"$VGPU_STATE/termed\"; cd \"$VGPU_STATE/termed\"; "
		 "printf 'vgpu-share 1\\nsuspended\\ndevice * memory 1g cores 12.5\\nend\\n' "
		 ">share");
	make(&s, tool_path("state/termed/region"));
	assert_says(tool_run("\"$VGPU\" list | tr -s ' '")->out, " -/12.5% suspended ");
	assert_says(tool_run("\"$VGPU\" list --json")->out, "\"suspended\": true");
	drop(&s);
	tool_run("rm -r \"$VGPU_STATE/termed\"");
}

static void processes_are_listed_one_by_one(void **state)
{
	char expected[256], name[16];
	struct slice s;

	make(&s, tool_path("one.cache"));
	prctl(PR_GET_NAME, name);
	snprintf(expected, sizeof(expected),
		"one " UUID " %d %s 1.5G context 512M plain 1000M pool 24M\n", (int)getpid(), name);
	assert_says(tool_run("\"$VGPU\" list --processes --region \"$HERE/one.cache\" | tr -s ' '")
			    ->out,
		expected);
	drop(&s);
}

static void json_is_json_and_counts_in_bytes(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("one.cache"));
	said = tool_run("\"$VGPU\" list --json --region \"$HERE/one.cache\" | python3 -c '"
			"import json, sys\n"
			"s = json.load(sys.stdin)[\"slices\"][0]\n"
			"d, p = s[\"devices\"][0], s[\"processes\"][0]\n"
			"print(s[\"name\"], s[\"running\"], d[\"uuid\"], d[\"index\"],\n"
			"      d[\"quota_bytes\"] >> 20, d[\"used_bytes\"] >> 20,\n"
			"      d[\"kind_bytes\"][\"pool\"] >> 20, d[\"refusals\"], p[\"pid\"],\n"
			"      p[\"devices\"][0][\"used_bytes\"] >> 20)'");
	assert_string_equal(said->err, "");
	assert_says(said->out, "one True " UUID " None 2048 1536 24 0 ");
	assert_says(said->out, " 1536\n");
	drop(&s);
}

/* Prints the samples of the device's families by their names; fails where a line or a sample's identity is wrong. */
#define READ_METRICS                                                                               \
	"python3 -c '\n"                                                                           \
	"import re, sys\n"                                                                         \
	"seen, typed = {}, set()\n"                                                                \
	"for line in sys.stdin.buffer.read().decode().split(\"\\n\")[:-1]:\n"                      \
	"    if line.startswith(\"# TYPE\"):\n"                                                    \
	"        assert line.split()[2] not in typed; typed.add(line.split()[2])\n"                \
	"    if line.startswith(\"#\"): continue\n"                                                \
	"    m = "                                                                                 \
	"re.fullmatch(r\"([a-z_]+)(?:\\{((?:[a-z_]+=\\\"(?:[^\\\"\\\\]|\\\\[\\\\n\\\"])*\\\",?)+)" \
	"\\})?"                                                                                    \
	" ([0-9.e+]+)\", line)\n"                                                                  \
	"    assert m and m[1] in typed and line.rsplit(\" \", 1)[0] not in seen, line\n"          \
	"    seen[line.rsplit(\" \", 1)[0]] = 1\n"                                                 \
	"    print(m[1], m[3], m[2] if \"kind=\" in (m[2] or \"\") else \"\")'"

static void metrics_are_what_prometheus_reads(void **state)
{
	struct slice s, other;
	const struct said *said;

	make(&s, tool_path("one.cache"));
	make(&other, tool_path("a\"\\b\xff\n.cache"));
	said = tool_run("\"$VGPU\" list --prometheus --region \"$HERE/one.cache\" "
			"--region \"$HERE/$(printf 'a\"\\\\b\\377\\n.cache')\" | " READ_METRICS);
	assert_string_equal(said->err, "");
	assert_says(said->out, "vgpu_slice_memory_used_bytes 1610612736 \n"
			       "vgpu_slice_memory_used_bytes 1610612736 \n");
	assert_says(said->out, "vgpu_slice_memory_quota_bytes 2147483648 \n");
	assert_says(said->out, "vgpu_slice_processes 1 \n");
	assert_says(said->out, "vgpu_slice_memory_kind_bytes 25165824 slice=\"one\"");
	assert_null(strstr(said->out, "compute_seconds"));
	said = tool_run("\"$VGPU\" list --prometheus --region \"$HERE/one.cache\" | "
			"python3 \"$METRICS\" vgpu");
	assert_string_equal(said->out, "");
	assert_int_equal(said->status, 0);
	drop(&s);
	drop(&other);
	said = tool_run("\"$VGPU\" list --prometheus --json");
	assert_int_equal(said->status, 2);
	assert_says(said->err, "--prometheus is a form of its own; without --json is right");
}

static void a_hostile_name_moves_no_cursor_and_breaks_no_json(void **state)
{
	char name[16] = "";
	struct slice s;

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "\x1b[2J\"\\\xff\n");
	make(&s, tool_path("one.cache"));
	assert_null(strchr(
		tool_run("\"$VGPU\" list --processes --region \"$HERE/one.cache\"")->out, 0x1b));
	assert_int_equal(tool_run("\"$VGPU\" list --json --region \"$HERE/one.cache\" >\"$HERE/j\" "
				  "&& python3 -m json.tool <\"$HERE/j\"")
				 ->status,
		0);
	prctl(PR_SET_NAME, name);
	drop(&s);
}

/* Every field of a region that is one, set to extremes, part by part. */
static void text_stays_text_and_bytes_that_are_none_are_replaced(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("a\xc3\xa9\xc2\x9b\xff"
			   "b.cache"));
	said = tool_run("\"$VGPU\" list --region \"$HERE\"/*b.cache");
	assert_says(said->out, "\na\xc3\xa9??b  ");
	said = tool_run("\"$VGPU\" list --json --region \"$HERE\"/*b.cache");
	assert_says(said->out, "\"name\": \"a\xc3\xa9\\u009b\xef\xbf\xbd"
			       "b\"");
	drop(&s);
	said = tool_run("\"$VGPU\" list --region \"$HERE/a\xc2\x9b\x1b[2J\"");
	assert_says(said->err, "/a??[2J'");
}

static void what_is_in_force_is_shown_beside_what_is_to_come(void **state)
{
	struct slice s;

	tool_run("mkdir \"$VGPU_STATE/one\"; printf 'vgpu-share 1\\ndevice * memory 4g cores "
		 "20\\nend\\n' "
		 ">\"$VGPU_STATE/one/share\"");
	make(&s, tool_path("state/one/region"));
	meter(&s, REGION_COMPUTE_LIMITED);
	atomic_store(&s.region.file->own.share_ns, 1);
	assert_says(
		tool_run("\"$VGPU\" list | tr -s ' '")->out, " 1.5G 2G->4G 75 0.0/30-50%->20% ");
	assert_says(tool_run("\"$VGPU\" list --json")->out,
		"\"pending_quota_bytes\": 4294967296, \"is_share_in_force\": false");
	atomic_store(&s.region.file->own.share_ns, 0);
	assert_says(tool_run("\"$VGPU\" list | tr -s ' '")->out, " 1.5G 2G 75 0.0/20% ");
	drop(&s);
	tool_run("rm -r \"$VGPU_STATE/one\"");
}

static void a_region_that_lies_is_listed_or_refused(void **state)
{
	static const struct {
		size_t from, to;
	} parts[] = {
		{0, offsetof(struct region_file, hami.slots)},
		{offsetof(struct region_file, hami.uuids),
			offsetof(struct region_file, hami.limit_bytes)},
		{offsetof(struct region_file, own.device_count),
			offsetof(struct region_file, own.slots)},
		{offsetof(struct region_file, own.slots) + sizeof(uint32_t),
			offsetof(struct region_file, own.slots[1])},
		{offsetof(struct region_file, own.slots), sizeof(struct region_file)},
		{offsetof(struct region_file, own.device_count), sizeof(struct region_file)},
	};
	static const unsigned char bytes[] = {0x00, 0x01, 0x1b, 0x7f, 0x80, 0xff};

	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		struct slice s[ARRAY_SIZE(bytes)];

		for (unsigned b = 0; b < ARRAY_SIZE(bytes); b++) {
			make(&s[b], tool_path("lie%u.cache", b));
			memset((char *)s[b].region.file + parts[i].from, bytes[b],
				parts[i].to - parts[i].from);
		}
		/* Beside each other: where the region says that it is metered, each takes its time to measure. */
		assert_int_equal(
			tool_run(
				"for lie in \"$HERE\"/lie*.cache; do\n"
				"{ \"$VGPU\" list --processes --region \"$lie\" >\"$lie.table\"\n"
				"echo $? >\"$lie.status\"; } &\n"
				"{ \"$VGPU\" list --json --region \"$lie\" >\"$lie.json\"\n"
				"echo $? >\"$lie.json.status\"; } &\n"
				"done; wait\n"
				"grep -q \"$(printf '\\033')\" \"$HERE\"/*.table && exit 2\n"
				"[ $(cat \"$HERE\"/*.status | grep -c '^[01]$') = %zu ] || exit 1\n"
				"rm \"$HERE\"/*.status; python3 -c 'import json, sys\n"
				"for name in sys.argv[1:]:\n    json.load(open(name))' "
				"\"$HERE\"/*.json",
				2 * ARRAY_SIZE(bytes))
				->status,
			0);
		for (unsigned b = 0; b < ARRAY_SIZE(bytes); b++)
			drop(&s[b]);
	}
}

static void a_broken_region_costs_one_line_and_hides_no_other(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("whole.cache"));
	said = tool_run("head -c 3000000 /dev/urandom >\"$HERE/broken\"; : >\"$HERE/empty\"; "
			"\"$VGPU\" list --region \"$HERE/broken\" --region \"$HERE/empty\" "
			"--region \"$HERE/absent\" --region \"$HERE/whole.cache\"");
	assert_int_equal(said->status, 1);
	assert_says(said->err, "/broken': the file is no accounting file");
	assert_says(said->err, "/empty': ");
	assert_says(said->err, "/absent': No such file");
	assert_says(said->out, "whole");
	drop(&s);
}

static void a_region_without_processes_is_shown_only_on_request(void **state)
{
	struct slice s;

	tool_run("mkdir \"$VGPU_STATE/quiet\"");
	make(&s, tool_path("state/quiet/region"));
	region_close(&s.region);
	assert_says(tool_run("\"$VGPU\" list")->out, "no slices");
	assert_says(tool_run("\"$VGPU\" list --all")->out, "quiet");
	tool_run("rm -r \"$VGPU_STATE/quiet\"");
}

/* Looks at the whole machine, where other slices may be, too. */
static void a_region_that_a_process_has_mapped_is_found_once(void **state)
{
	struct slice s;
	const struct said *said;

	make(&s, tool_path("somewhere"));
	said = tool_run("env -u VGPU_STATE XDG_RUNTIME_DIR=\"$HERE\" \"$VGPU\" list --json | "
			"grep -c \"$HERE/somewhere\"");
	assert_string_equal(said->out, "1\n");
	drop(&s);
}

/* One line of the kernel's list of mappings has no room for two. */
static void a_region_whose_path_is_several_lines_is_found(void **state)
{
	struct slice s;

	/* Others may not follow the kernel's links to what is mapped. */
	if (geteuid() != 0)
		skip();
	make(&s, tool_path("two\nlines"));
	assert_string_equal(
		tool_run("env -u VGPU_STATE \"$VGPU\" list --json | python3 -c 'import json, "
			 "sys; print(sum(p[\"pid\"] == %d for s in "
			 "json.load(sys.stdin)[\"slices\"] for p in "
			 "s[\"processes\"]))'",
			(int)getpid())
			->out,
		"1\n");
	drop(&s);
}

static void a_long_name_leaves_room_for_others(void **state)
{
	char name[256];
	struct slice s;

	memset(name, 'x', 200);
	name[200] = '\0';
	make(&s, tool_path("%s", name));
	name[128] = '\0';
	assert_says(tool_run("\"$VGPU\" list --region \"$HERE\"/xxx*")->out, name);
	name[128] = 'x';
	name[129] = '\0';
	assert_null(strstr(tool_run("\"$VGPU\" list --region \"$HERE\"/xxx*")->out, name));
	drop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_slices_is_said_to_be_one),
		cmocka_unit_test(a_region_shows_what_its_processes_hold),
		cmocka_unit_test(compute_time_is_shown_beside_what_is_granted),
		cmocka_unit_test(json_tells_compute_time_in_figures),
		cmocka_unit_test(what_was_evicted_is_shown_and_not_in_use),
		cmocka_unit_test(limits_of_a_slice_that_meters_nothing_are_its_shares),
		cmocka_unit_test(processes_are_listed_one_by_one),
		cmocka_unit_test(json_is_json_and_counts_in_bytes),
		cmocka_unit_test(metrics_are_what_prometheus_reads),
		cmocka_unit_test(a_hostile_name_moves_no_cursor_and_breaks_no_json),
		cmocka_unit_test(text_stays_text_and_bytes_that_are_none_are_replaced),
		cmocka_unit_test(what_is_in_force_is_shown_beside_what_is_to_come),
		cmocka_unit_test(a_region_that_lies_is_listed_or_refused),
		cmocka_unit_test(a_broken_region_costs_one_line_and_hides_no_other),
		cmocka_unit_test(a_region_without_processes_is_shown_only_on_request),
		cmocka_unit_test(a_region_that_a_process_has_mapped_is_found_once),
		cmocka_unit_test(a_region_whose_path_is_several_lines_is_found),
		cmocka_unit_test(a_long_name_leaves_room_for_others),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
