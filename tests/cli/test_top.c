/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu top: what it shows of regions made by hand, how wide, and what its keys do in a terminal. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/clock.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tests/cli/tool.h"

#define MIB  (UINT64_C(1) << 20)
#define UUID "GPU-00000000-1111-2222-3333-444444444444"

struct slice {
	struct region region;
	char name[64], path[512];
	unsigned slot, device;
	pthread_t worker;
	_Atomic bool is_over;
};

/*
 * The device is used 30 % of the time, waits for its budget half of it and for its turn 5 %, and is given
 * 2,000 launches a second: each figure is a part of the clock, so that any two readings say so.
 */
static void *work(void *argument)
{
	struct slice *s = argument;
	struct region_compute *c = &s->region.file->own.compute[s->device];
	struct timespec pause = {.tv_nsec = 200000};
	uint64_t start = clock_now_ns();

	while (!s->is_over) {
		uint64_t ns = clock_now_ns() - start;

		atomic_store(&c->busy_ns, ns * 3 / 10);
		atomic_store(&c->budget_wait_ns, ns / 2);
		atomic_store(&c->turn_wait_ns, ns / 20);
		atomic_store(&c->launches, ns / 500000);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void make(struct slice *s, const char *name)
{
	snprintf(s->name, sizeof(s->name), "%s", name);
	tool_run("mkdir \"$VGPU_STATE/%s\"; cd \"$VGPU_STATE/%s\"; : >lock; "
		 "printf 'vgpu-share 1\\nslice %s\\nregion %%s/region\\n"
		 "device * memory 2g cores 30 cap 50\\nend\\n' \"$PWD\" >share",
		name, name, name);
	snprintf(s->path, sizeof(s->path), "%s", tool_path("state/%s/region", name));
	assert_int_equal(region_open(s->path, &s->region), 0);
	assert_int_equal(slot_claim(&s->region, &s->slot), 0);
	assert_int_equal(region_device(&s->region, UUID, &s->device), 0);
	s->region.file->hami.limit_bytes[s->device] = 2048 * MIB;
	s->region.file->own.devices[s->device].refusal_count = 3;
	ledger_charge_anyway(s->region.file, s->slot, s->device, ledger_units(1536 * MIB));
	atomic_store(&s->region.file->own.compute[s->device].limits,
		UINT64_C(300) << 48 | UINT64_C(500) << 32 | REGION_COMPUTE_LIMITED);
	s->is_over = false;
	assert_int_equal(pthread_create(&s->worker, NULL, work, s), 0);
}

static void stop(struct slice *s)
{
	if (s->is_over)
		return;
	s->is_over = true;
	pthread_join(s->worker, NULL);
}

static void drop(struct slice *s)
{
	stop(s);
	region_close(&s->region);
	tool_run("rm -r \"$VGPU_STATE/%s\"", s->name);
}

static void a_call_that_makes_no_sense_says_what_would(void **state)
{
	static const char *const intervals[] = {
		"0", "0.05", "-1", "x", "1.", ".5", "1.2345", "3601", "99999", "1e3", "''", "nan"};

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		const struct said *said =
			tool_run("\"$VGPU\" top --once --interval %s", intervals[i]);

		assert_int_equal(said->status, 2);
		assert_says(said->err, "seconds from 0.1 to 3600");
	}
	assert_int_equal(tool_run("\"$VGPU\" top one")->status, 2);
	assert_int_equal(tool_run("\"$VGPU\" top --interval")->status, 2);
}

static void a_machine_without_slices_is_said_to_be_one(void **state)
{
	assert_string_equal(tool_run("\"$VGPU\" top --once --interval 0.1")->out,
		"There are no slices on this machine.\n");
	assert_says(tool_run("\"$VGPU\" top --once --interval 0.1 --json | python3 -c '"
			     "import json, sys; print(json.load(sys.stdin)[\"slices\"])'")
			    ->out,
		"[]\n");
}

static const struct said *read_twice(void)
{
	return tool_run(
		"\"$VGPU\" top --once --json | python3 -c '"
		"import json, sys\n"
		"t = json.load(sys.stdin)\n"
		"d = t[\"slices\"][0][\"devices\"][0]; c = d[\"compute\"]\n"
		"print(t[\"slices\"][0][\"name\"], d[\"used_bytes\"] >> 20, d[\"refusals\"],\n"
		"    c[\"cores_percent\"], c[\"cap_percent\"], 15 < c[\"used_percent\"] < 60,\n"
		"    25 < c[\"budget_wait_percent\"] < 99, 2 < c[\"time_slice_wait_percent\"] < "
		"10,\n"
		"    1000 < c[\"launches_per_s\"] < 4000)'");
}

/* Wide bounds, and some tries: a busy machine may come late to a clock, or to who moves the counters. */
static void what_happened_between_two_readings_is_shown(void **state)
{
	static const char right[] = "one 1536 3 30.0 50.0 True True True True\n";
	const struct said *said = NULL;
	struct slice s;

	make(&s, "one");
	for (unsigned i = 0; i < 10 && (!said || strcmp(said->out, right)); i++)
		said = read_twice();
	assert_string_equal(said->err, "");
	assert_string_equal(said->out, right);
	drop(&s);
}

static void the_table_has_a_row_for_each_slice_and_device(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s, "one");
	said = tool_run("COLUMNS=120 \"$VGPU\" top --once --interval 0.2 | tr -s ' '");
	assert_says(
		said->out, "SLICE DEVICE MEMORY COMPUTE WAIT% TSLICE% LAUNCH/S REFUSED STATE\n");
	assert_says(said->out, "\none GPU-00000000 1.5G/2G ");
	assert_says(said->out, "/30-50% ");
	assert_says(said->out, " 3 -");
	/* the share's word counts, not a process's of before */
	atomic_fetch_or(&s.region.file->own.compute[s.device].limits, REGION_COMPUTE_SUSPENDED);
	assert_null(strstr(tool_run("\"$VGPU\" top --once --interval 0.2")->out, "suspended"));
	tool_run("\"$VGPU\" suspend one");
	assert_says(tool_run("\"$VGPU\" top --once --interval 0.2")->out, " suspended\n");
	drop(&s);
}

/* Names as long as they may be, figures as large, terminals as narrow. */
static void no_line_is_wider_than_the_terminal(void **state)
{
	static const unsigned widths[] = {1, 5, 20, 40, 60, 79, 80, 81, 100, 132, 200, 1000};
	char name[64];
	struct region_compute *c;
	struct slice s;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	make(&s, name);
	s.region.file->own.devices[s.device].refusal_count = UINT64_MAX;
	s.region.file->hami.limit_bytes[s.device] = UINT64_MAX;
	c = &s.region.file->own.compute[s.device];
	atomic_store(&c->limits, UINT64_C(0x03e703e8ffffff) << 8 | REGION_COMPUTE_SUSPENDED);
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		const struct said *said = tool_run(
			"COLUMNS=%u \"$VGPU\" top --once --interval 0.1 | "
			"awk '{ if (length($0) > most) most = length($0) } END { print most }'",
			widths[i]);
		unsigned most = 0;

		assert_int_equal(sscanf(said->out, "%u", &most), 1);
		assert_in_range(most, 1, widths[i]);
	}
	assert_string_equal(tool_run("env -u COLUMNS \"$VGPU\" top --once --interval 0.1 | "
				     "awk 'length($0) > 80'")
				    ->out,
		"");
	drop(&s);
}

static void a_region_that_lies_moves_no_cursor_and_breaks_no_json(void **state)
{
	static const unsigned char bytes[] = {0x01, 0x1b, 0x80, 0xff};

	for (unsigned b = 0; b < ARRAY_SIZE(bytes); b++) {
		struct slice s;

		make(&s, "one");
		stop(&s);
		memset(s.region.file->own.compute, bytes[b], sizeof(s.region.file->own.compute));
		memset(s.region.file->hami.uuids, bytes[b], sizeof(s.region.file->hami.uuids));
		assert_null(strchr(tool_run("\"$VGPU\" top --once --interval 0.1")->out, 0x1b));
		assert_int_equal(tool_run("\"$VGPU\" top --once --interval 0.1 --json >\"$HERE/j\" "
					  "&& python3 -m json.tool <\"$HERE/j\" >/dev/null")
					 ->status,
			0);
		drop(&s);
	}
}

static void json_is_an_object_a_line(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s, "one");
	said = tool_run("timeout 20 \"$VGPU\" top --json --interval 0.1 | head -n 3 | python3 -c '"
			"import json, sys\n"
			"print(*[len(json.loads(line)[\"slices\"]) for line in sys.stdin])'");
	assert_string_equal(said->out, "1 1 1\n");
	drop(&s);
}

/*
 * A terminal of rows and columns, in which each pair of arguments is keys to send when a text has
 * appeared. Prints what ended it, whether the terminal is as it was, and the widest line. vgpu starts when
 * the size is set, so what the terminal was is read before.
 */
static const char terminal[] =
	"import fcntl, os, pty, re, select, struct, sys, termios, time\n"
	"columns, steps = int(sys.argv[1]), sys.argv[2:]\n"
	"pid, fd = pty.fork()\n"
	"if pid == 0:\n"
	"    while fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)) == bytes(8):\n"
	"        time.sleep(0.001)\n"
	"    os.execv(os.environ['VGPU'], ['vgpu', 'top', '--interval', '0.2'])\n"
	"before = termios.tcgetattr(fd)\n"
	"fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))\n"
	"text, all, deadline = '', '', time.time() + 50\n"
	"def await_text(part):\n"
	"    global text, all\n"
	"    while part not in text:\n"
	"        if time.time() > deadline or not select.select([fd], [], [], 30)[0]:\n"
	"            print('no', repr(part), 'in', repr(text[-3000:])); os.kill(pid, 9); "
	"sys.exit(1)\n"
	"        got = os.read(fd, 65536).decode(); text += got; all += got\n"
	"    text = ''\n"
	"for part, keys in zip(steps[::2], steps[1::2]):\n"
	"    await_text(part)\n"
	"    if keys.startswith('signal '):\n"
	"        os.kill(pid, int(keys[7:]))\n"
	"    elif keys.startswith('size '):\n"
	"        columns = max(columns, int(keys[5:]))\n"
	"        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(keys[5:]), 0, "
	"0))\n"
	"    elif keys.startswith('run '):\n"
	"        os.system(keys[4:])\n"
	"    else:\n"
	"        os.write(fd, keys.encode().decode('unicode_escape').encode())\n"
	"after = None\n"
	"while True:\n"
	"    try:\n"
	"        got = os.read(fd, 65536)\n"
	"    except OSError:\n"
	"        break\n"
	"    if not got:\n"
	"        break\n"
	"    all += got.decode()\n"
	"    if '\\x1b[?1049l' in all and after is None:\n"
	"        try:\n"
	"            after = termios.tcgetattr(fd)\n"
	"        except termios.error:\n"
	"            after = before\n"
	"status = os.WEXITSTATUS(os.waitpid(pid, 0)[1])\n"
	"all_lines = all.replace('\\x1b[H', '\\r\\n')\n"
	"lines = re.sub(r'\\x1b\\[[?0-9;]*[a-zA-Z]', '', all_lines).split('\\r\\n')\n"
	"print(status, after == before or after is None,\n"
	"      all.endswith('\\x1b[?25h\\x1b[?1049l') or repr(all[-200:]),\n"
	"      max(len(line.strip('\\r')) for line in lines) <= columns)\n";

static const struct said *in_terminal(const char *steps)
{
	FILE *file = fopen(tool_path("terminal.py"), "we");

	assert_non_null(file);
	fputs(terminal, file);
	fclose(file);
	return tool_run("timeout 60 python3 \"$HERE/terminal.py\" %s", steps);
}

static void the_terminal_is_left_as_it_was_however_it_ends(void **state)
{
	static const struct {
		const char *steps, *said;
	} ends[] = {
		{"80 one q", "0 True True True\n"},
		{"80 one '\\x03'", "0 True True True\n"},
		{"80 one 'signal 15'", "143 True True True\n"},
		{"80 one 'signal 1'", "129 True True True\n"},
		{"40 one 'size 30' one q", "0 True True True\n"},
		{"40 one 'size 120' REFUSED q", "0 True True True\n"},
		{"2 o q", "0 True True True\n"},
	};
	struct slice s;

	make(&s, "one");
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		assert_string_equal(in_terminal(ends[i].steps)->out, ends[i].said);
	drop(&s);
}

static void keys_change_the_selected_slice(void **state)
{
	struct slice one, two;

	make(&one, "one");
	make(&two, "two");
	assert_string_equal(in_terminal("80 two - 'one: cores 25%' + 'one: cores 30%' "
					"'\\x1b[B' two + 'two: cores 35%' s 'two: suspended' "
					"h 'h help' q")
				    ->out,
		"0 True True True\n");
	assert_string_equal(
		tool_run(
			"cd \"$VGPU_STATE\"; grep -h -e device -e '^suspended' one/share two/share")
			->out,
		"device * memory 2147483648 cores 30 cap 50\n"
		"device " UUID " memory 2147483648 cores 30 cap 50\n"
		"suspended\n"
		"device * memory 2147483648 cores 30 cap 50\n"
		"device " UUID " memory 2147483648 cores 35 cap 50\n");
	assert_string_equal(
		in_terminal("80 suspended j two s 'two: resumed' c 'by compute' m 'by memory' "
			    "w 'waiting for budget' t 'waiting for time slices' l 'by launches' "
			    "r 'by refusals' n 'by name' q")
			->out,
		"0 True True True\n");
	assert_int_equal(tool_run("grep -q '^suspended' \"$VGPU_STATE/two/share\"")->status, 1);
	drop(&two);
	drop(&one);
}

/* The key may be pressed when the slice has just gone: it is for no other one. */
static void a_key_for_a_slice_that_went_away_changes_none(void **state)
{
	struct slice one, two;

	make(&one, "one");
	make(&two, "two");
	assert_string_equal(
		in_terminal(
			"80 two j two 'run mv $VGPU_STATE/two $VGPU_STATE/.two' "
			"'slice has gone' s 'no slice is selected' - 'no slice is selected' j one "
			"- 'one: cores 25%' q")
			->out,
		"0 True True True\n");
	assert_int_equal(tool_run("grep -q '^suspended' \"$VGPU_STATE/one/share\"")->status, 1);
	tool_run("mv \"$VGPU_STATE/.two\" \"$VGPU_STATE/two\"");
	drop(&two);
	drop(&one);
}

static void keys_that_mean_nothing_do_nothing(void **state)
{
	const struct said *said;
	struct slice s;

	make(&s, "one");
	said = in_terminal(
		"80 one '\\x1b[A\\x1b[5~\\x1b\\x1bOAxyz\\x00\\x01\\x7f\\xff\\x1b[200;1H' "
		"one 'q'");
	assert_string_equal(said->out, "0 True True True\n");
	assert_says(tool_run("cat \"$VGPU_STATE/one/share\"")->out, "device * memory 2g cores 30");
	drop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_makes_no_sense_says_what_would),
		cmocka_unit_test(a_machine_without_slices_is_said_to_be_one),
		cmocka_unit_test(what_happened_between_two_readings_is_shown),
		cmocka_unit_test(the_table_has_a_row_for_each_slice_and_device),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(a_region_that_lies_moves_no_cursor_and_breaks_no_json),
		cmocka_unit_test(json_is_an_object_a_line),
		cmocka_unit_test(the_terminal_is_left_as_it_was_however_it_ends),
		cmocka_unit_test(keys_change_the_selected_slice),
		cmocka_unit_test(keys_that_mean_nothing_do_nothing),
		cmocka_unit_test(a_key_for_a_slice_that_went_away_changes_none),
	};

	return cmocka_run_group_tests(tests, tool_set_up, tool_tear_down);
}
