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
		"SLICE DEVICE PROCESSES USED QUOTA % HOLDS\n"
		"one " UUID " 1 1.5G 2G 75 context 512M plain 1000M pool 24M\n");
	assert_string_equal(said->err, "");
	drop(&s);
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

	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++)
		for (unsigned b = 0; b < ARRAY_SIZE(bytes); b++) {
			const struct said *said;
			struct slice s;

			make(&s, tool_path("one.cache"));
			memset((char *)s.region.file + parts[i].from, bytes[b],
				parts[i].to - parts[i].from);
			said = tool_run("\"$VGPU\" list --processes --region \"$HERE/one.cache\"");
			assert_in_range(said->status, 0, 1);
			assert_null(strchr(said->out, 0x1b));
			said = tool_run("\"$VGPU\" list --json --region \"$HERE/one.cache\" "
					">\"$HERE/j\"; test $? -lt 2 && python3 -m json.tool "
					"<\"$HERE/j\" >/dev/null");
			assert_int_equal(said->status, 0);
			drop(&s);
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
	assert_says(said->err, "/broken': the file is not a region");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_without_slices_is_said_to_be_one),
		cmocka_unit_test(a_region_shows_what_its_processes_hold),
		cmocka_unit_test(processes_are_listed_one_by_one),
		cmocka_unit_test(json_is_json_and_counts_in_bytes),
		cmocka_unit_test(a_hostile_name_moves_no_cursor_and_breaks_no_json),
		cmocka_unit_test(a_region_that_lies_is_listed_or_refused),
		cmocka_unit_test(a_broken_region_costs_one_line_and_hides_no_other),
		cmocka_unit_test(a_region_without_processes_is_shown_only_on_request),
		cmocka_unit_test(a_region_that_a_process_has_mapped_is_found_once),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
