/* SPDX-License-Identifier: Apache-2.0 */
/* The program vgpu-sim, run as a person runs it. $VGPU_SIM names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sim/machine/mig.h"
#include "sim/tests/nvml/scratch.h"

#define MiB 1048576ull

/* What the last command wrote, to both outputs, and its exit status. */
static char output[65536];
static int status;

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
	char arguments[2048], line[8192];
	size_t size;
	va_list args;
	FILE *pipe;

	va_start(args, format);
	vsnprintf(arguments, sizeof(arguments), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "exec '%s' %s 2>&1", getenv("VGPU_SIM"), arguments);
	pipe = popen(line, "re");
	assert_non_null(pipe);
	size = fread(output, 1, sizeof(output) - 1, pipe);
	output[size] = '\0';
	status = WEXITSTATUS(pclose(pipe));
}

static void assert_says(const char *text)
{
	if (!strstr(output, text))
		fail_msg("'%s' is not in:\n%s", text, output);
}

static int begin(void **state)
{
	scratch_begin("h200x2");
	return 0;
}

static int end(void **state)
{
	scratch_end();
	return 0;
}

static void start_makes_the_machine_and_refuses_another(void **state)
{
	run("start --board t4");
	assert_int_equal(status, 0);
	assert_says(": t4, 1 x Tesla T4\n");
	run("start --board=t4");
	assert_int_equal(status, 0);
	run("start --board h100");
	assert_int_equal(status, 1);
	assert_says("a machine with another board exists already");
	run("reset");
	assert_int_equal(status, 0);
	run("start --board h100");
	assert_int_equal(status, 0);
}

static void start_takes_a_file(void **state)
{
	FILE *file = fopen(scratch_path("mine.board"), "we");

	assert_non_null(file);
	fputs("base = h200\ntotal_bytes = 1GiB\n", file);
	fclose(file);
	run("start --board %s", scratch_path("mine.board"));
	assert_int_equal(status, 0);
	run("describe --json");
	assert_says("\"board\":\"mine\"");
	assert_says("\"total_bytes\":1073741824");
}

static void truth_tells_tags_and_processes(void **state)
{
	struct holder a, b;

	run("start");
	a = holder_start("team-a", 0, 1, 100 * MiB);
	b = holder_start("team-b", 1, 1, 4 * MiB);
	run("truth --json");
	assert_int_equal(status, 0);
	assert_says("{\"tag\":\"team-a\",\"device\":0,\"processes\":1,\"held_bytes\":648019968,");
	assert_says("\"peak_held_bytes\":648019968");
	assert_says("\"plain\":104857600");
	run("truth --tag team-b");
	assert_says("team-b");
	assert_null(strstr(output, "team-a"));
	holder_end(&a);
	run("truth --tag team-a --json");
	assert_says(
		"\"processes\":0,\"held_bytes\":0,\"total_bytes\":0,\"peak_held_bytes\":648019968");
	holder_end(&b);
}

static void reset_refuses_while_memory_is_held(void **state)
{
	struct holder holder;

	run("start");
	holder = holder_start("a", 0, 1, 0);
	run("reset");
	assert_int_equal(status, 1);
	assert_says("tag 'a', holds 518.0 MiB");
	assert_says("reset --force");
	run("reset --force");
	assert_int_equal(status, 0);
	run("truth --json");
	assert_says("\"processes\":[]");
	holder_end(&holder);
}

static void inject_lists_and_clears_rules(void **state)
{
	run("inject cuMemAlloc_v2 --nth 3 --code CUDA_ERROR_OUT_OF_MEMORY --tag a");
	assert_int_equal(status, 0);
	run("inject cuInit --every --delay-ms 5");
	assert_int_equal(status, 0);
	run("inject --list");
	assert_says(
		"cuMemAlloc_v2 tag 'a', calls 3 to 3, answers 2 (OUT_OF_MEMORY), acted 0 times");
	assert_says("cuInit tag '*', every call, waits 5.000 ms, acted 0 times");
	run("inject --clear");
	run("inject --list");
	assert_string_equal(output, "");
	run("inject cuMemAlloc_v3 --code 2");
	assert_int_equal(status, 1);
	assert_says("exports no 'cuMemAlloc_v3'");
	run("inject cuInit");
	assert_int_equal(status, 2);
	assert_says("give --code, --delay-ms or both");
	run("inject cuInit --code LOUD");
	assert_int_equal(status, 2);
	assert_says("--code 'LOUD': not right");
}

static void an_event_names_its_card(void **state)
{
	run("event xid 79 --device 1");
	assert_int_equal(status, 0);
	run("event ecc-uncorrected");
	assert_int_equal(status, 0);
	run("event xid 79 --device 2");
	assert_int_equal(status, 1);
	assert_says("there is no such device");
	run("event xid");
	assert_int_equal(status, 2);
	assert_says("give xid NUMBER");
	run("describe --json");
	assert_says("\"numa_node\":0");
}

static void a_card_is_cut_and_whole_again(void **state)
{
	struct machine *machine;
	unsigned int id, compute;

	run("mig");
	assert_string_equal(
		output, "device 0 whole, pending whole\ndevice 1 whole, pending whole\n");
	run("mig on --device 1");
	assert_int_equal(status, 0);
	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	assert_int_equal(
		mig_create(machine, 1, mig_profile_of_kind(machine_board(machine), 2), 4, &id), 0);
	run("mig --json");
	assert_says("{\"index\":1,\"mode\":\"mig\",\"pending\":\"mig\",\"instances\":[{\"id\":");
	assert_says("\"profile\":\"3g.71gb\",\"start\":4,\"size\":4,\"uuid\":\"\"}");
	assert_int_equal(mig_create_compute(machine, 1, id, 3, -1, &compute), 0);
	machine_close(machine);
	run("mig");
	assert_says("device 1 mig, pending mig\n  instance ");
	assert_says(" 3g.71gb at 4:4 MIG-");
	run("mig off");
	assert_int_equal(status, 1);
	assert_says("device 1 has instances or is in use: its mode is pending");
	run("mig on --device 2");
	assert_int_equal(status, 1);
	assert_says("there is no such device");
	run("mig half");
	assert_int_equal(status, 2);
	run("reset");
	run("start --board t4");
	run("mig on");
	assert_int_equal(status, 1);
	assert_says("have no MIG");
}

static void a_card_and_the_driver_go_and_come(void **state)
{
	run("card lose --device 1");
	assert_int_equal(status, 0);
	run("smi -L");
	assert_int_not_equal(status, 0);
	assert_says("lost");
	run("card return --device 1");
	run("smi -L");
	assert_int_equal(status, 0);
	run("card lose --device 2");
	assert_int_equal(status, 1);
	run("card find");
	assert_int_equal(status, 2);
	run("driver stop");
	assert_int_equal(status, 0);
	run("smi -L");
	assert_int_not_equal(status, 0);
	run("driver start");
	run("smi -L");
	assert_int_equal(status, 0);
	run("driver");
	assert_int_equal(status, 2);
}

static void kernel_sets_a_duration(void **state)
{
	run("kernel saxpy 1.5ms");
	assert_int_equal(status, 0);
	run("kernel saxpy 15");
	assert_int_equal(status, 2);
	assert_says("duration '15': not right");
	run("kernel --clear");
	assert_int_equal(status, 0);
	run("kernel saxpy");
	assert_int_equal(status, 2);
}

static void smi_shows_devices_and_processes(void **state)
{
	struct holder holder;
	char line[256];

	run("start");
	holder = holder_start("a", 1, 1, 100 * MiB);
	run("smi");
	assert_int_equal(status, 0);
	assert_says("driver 580.159.04, CUDA 13.0, 2 devices");
	assert_says("618 /  143771 MiB");
	run("smi -L");
	assert_says("GPU 0: NVIDIA H200 (UUID: GPU-");
	assert_says("GPU 1: NVIDIA H200 (UUID: GPU-");
	run("smi --query-gpu=index,memory.total,memory.used,memory.free --format=csv");
	assert_string_equal(output,
		"index, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n"
		"0, 143771 MiB, 0 MiB, 143155 MiB\n"
		"1, 143771 MiB, 618 MiB, 142537 MiB\n");
	run("smi --query-gpu index,memory.used --format csv,noheader,nounits");
	assert_string_equal(output, "0, 0\n1, 618\n");
	run("smi --query-compute-apps=pid,used_memory --format=csv,noheader");
	snprintf(line, sizeof(line), "%d, 618 MiB\n", (int)holder.pid);
	assert_string_equal(output, line);
	run("smi -q");
	assert_says("Attached GPUs                             : 2\n");
	assert_says("BAR1 Memory Usage");
	snprintf(line, sizeof(line), "Process ID                        : %d\n", (int)holder.pid);
	assert_says(line);
	assert_says("Used GPU Memory               : 618 MiB\n");
	run("smi pmon");
	assert_says("    0           -      -      -      -    -\n");
	snprintf(line, sizeof(line), "    1 %11d      C ", (int)holder.pid);
	assert_says(line);
	run("smi dmon");
	assert_int_equal(status, 2);
	assert_says("unknown word 'dmon'");
	run("smi -q -L");
	assert_int_equal(status, 2);
	run("smi --query-gpu=index,colour");
	assert_int_equal(status, 2);
	assert_says("unknown field 'colour'");
	holder_end(&holder);
}

static void a_wrong_word_is_named(void **state)
{
	run("truth --loud");
	assert_int_equal(status, 2);
	assert_says("vgpu-sim truth: unknown option '--loud'");
	run("truth --tag");
	assert_int_equal(status, 2);
	assert_says("option '--tag' needs a value");
	run("truth --json=1");
	assert_int_equal(status, 2);
	assert_says("option '--json' takes no value");
	run("describe it");
	assert_int_equal(status, 2);
	assert_says("too many arguments: 'it'");
	run("tell");
	assert_int_equal(status, 2);
	assert_says("unknown command 'tell'");
	run("counts cuNothing");
	assert_int_equal(status, 1);
	assert_says("exports no 'cuNothing'");
}

static void help_names_every_command(void **state)
{
	run("help");
	assert_int_equal(status, 0);
#define COMMAND(name, arguments, summary) assert_says("\n  " #name " ");
#include "sim/tool/command.def"
	run("help truth");
	assert_says("vgpu-sim truth [--tag TAG] [--json]");
	run("version");
	assert_string_equal(output, "vgpu-sim " VGPU_VERSION "\n");
	run("boards");
	assert_says("h200x2   2 x NVIDIA H200, 139.8 GiB each (the default)");
	run("boards t4");
	assert_says("base = h200\n");
	run("--state %s describe", scratch_path("other"));
	assert_int_equal(status, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(start_makes_the_machine_and_refuses_another),
		TEST(start_takes_a_file),
		TEST(truth_tells_tags_and_processes),
		TEST(reset_refuses_while_memory_is_held),
		TEST(inject_lists_and_clears_rules),
		TEST(an_event_names_its_card),
		TEST(a_card_is_cut_and_whole_again),
		TEST(a_card_and_the_driver_go_and_come),
		TEST(kernel_sets_a_duration),
		TEST(smi_shows_devices_and_processes),
		TEST(a_wrong_word_is_named),
		TEST(help_names_every_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
