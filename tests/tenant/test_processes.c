/* SPDX-License-Identifier: Apache-2.0 */
/* The processes, and the work, that NVML shows a tenant are its slice's. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "region/snapshot.h"
#include "sim/core/inject.h"

#define NOT_FOUND	  6
#define INSUFFICIENT_SIZE 7
#define WRONG_VERSION	  25

static const char *const compute_lists[] = {"nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"};
static const char *const empty_lists[] = {"nvmlDeviceGetGraphicsRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3"};

/* Two slices on card 0 with two processes and one, and one who looks into the first. */
struct scene {
	struct slice *a, *b;
	struct tenant *one, *two, *other, *looker;
};

static struct scene make_scene(struct node *node, const char *setting)
{
	struct scene s = {
		.a = slice_new(node, "a", "4g", "1g"), .b = slice_new(node, "b", "4g", NULL)};

	s.one = tenant_start(node, s.a, "linked", setting, NULL);
	s.two = tenant_start(node, s.a, "linked", setting, NULL);
	s.other = tenant_start(node, s.b, "linked", setting, NULL);
	s.looker = tenant_start(node, s.a, "found-dlopen", setting, NULL);
	expect(s.one, OK, "primary 0");
	expect(s.one, OK, "alloc x 100m");
	expect(s.two, OK, "primary 0");
	expect(s.two, OK, "alloc x 10m");
	expect(s.other, OK, "primary 0");
	expect(s.other, OK, "alloc x 1g");
	return s;
}

static bool shows(const struct tenant *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool shows(const struct tenant *t, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return strstr(t->answer, text) != NULL;
}

static void check_rows(const struct scene *s)
{
	const struct tenant *l = s->looker;

	assert_int_equal(tenant_number(l, "count"), 2);
	assert_true(
		shows(l, " %d:%llu", s->one->pid, (unsigned long long)(CONTEXT_BYTES + 100 * MIB)));
	assert_true(
		shows(l, " %d:%llu", s->two->pid, (unsigned long long)(CONTEXT_BYTES + 10 * MIB)));
}

static void lists_hold_the_slices_processes_alone(void **state)
{
	struct scene s = make_scene(*state, NULL);

	for (unsigned i = 0; i < 3; i++) {
		expect(s.looker, OK, "list %s 0 8", compute_lists[i]);
		check_rows(&s);
		assert_true(i == 0 || shows(s.looker, ":ffffffff:ffffffff"));
		expect(s.looker, OK, "list %s 1 8", compute_lists[i]);
		assert_int_equal(tenant_number(s.looker, "count"), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		expect(s.looker, OK, "list %s 0 8", empty_lists[i]);
		assert_int_equal(tenant_number(s.looker, "count"), 0);
	}
	expect(s.looker, OK, "details 0 0 8");
	check_rows(&s);
	expect(s.looker, OK, "details 0 1 8");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	/* in the slice itself, and from the other one */
	expect(s.one, OK, "list %s 0 8", compute_lists[2]);
	expect(s.looker, OK, "list %s 0 8", compute_lists[2]);
	assert_string_equal(s.one->answer, s.looker->answer);
	expect(s.other, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(s.other, "count"), 1);
	assert_true(shows(
		s.other, " %d:%llu:", s.other->pid, (unsigned long long)(CONTEXT_BYTES + GIB)));
}

static void room_and_count_are_as_the_driver_has_them(void **state)
{
	struct scene s = make_scene(*state, NULL);

	for (unsigned i = 0; i < 3; i++) {
		expect(s.looker, INSUFFICIENT_SIZE, "list %s 0 0 null", compute_lists[i]);
		assert_int_equal(tenant_number(s.looker, "count"), 2);
		expect(s.looker, INSUFFICIENT_SIZE, "list %s 0 1", compute_lists[i]);
		assert_int_equal(tenant_number(s.looker, "count"), 2);
		expect(s.looker, 2, "list %s 0 4 null", compute_lists[i]);
		expect(s.looker, OK, "list %s 0 2", compute_lists[i]);
		expect(s.looker, OK, "list %s 1 4 null", compute_lists[i]);
		assert_int_equal(tenant_number(s.looker, "count"), 0);
	}
	expect(s.looker, INSUFFICIENT_SIZE, "details 0 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, WRONG_VERSION, "details 0 0 8 1");
	expect(s.looker, 2, "details 0 9 8");
	expect(s.looker, INSUFFICIENT_SIZE, "samples 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 72);
}

static void what_is_null_is_the_drivers_to_refuse(void **state)
{
	struct node *node = *state;
	struct scene s = make_scene(node, "VGPU_SHOW_UTILIZATION=slice");
	struct tenant *bare;

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	expect(bare, OK, "nulls 0");
	expect(s.looker, OK, "nulls 0");
	assert_string_equal(s.looker->answer, bare->answer);
	expect(bare, 2, "bar1 9");
	expect(s.looker, 2, "bar1 9");
}

static void the_dead_vanish_and_the_looker_leaves_no_trace(void **state)
{
	struct scene s = make_scene(*state, NULL);

	tenant_kill(s.one, 9);
	expect(s.looker, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(s.looker, "count"), 1);
	assert_true(shows(s.looker, " %d:", s.two->pid));
	expect(s.looker, OK, "nvml 0");
	assert_int_equal(tenant_number(s.looker, "used"), CONTEXT_BYTES + 10 * MIB);
	assert_int_equal(tenant_end(s.two), 0);
	expect(s.looker, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	expect(s.looker, OK, "bar1 0");
	assert_int_equal(tenant_number(s.looker, "used"), 0);
	assert_int_equal(tenant_end(s.looker), 0);
}

static void looking_makes_no_region(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *looker = tenant_start(*state, slice, "found-dlopen", NULL);

	expect(looker, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(looker, "count"), 0);
	expect(looker, OK, "bar1 0");
	expect(looker, NOT_FOUND, "samples 0 100");
	expect(looker, OK, "busy 0");
	expect(looker, OK, "name %d 64", looker->pid);
	assert_true(access(slice->region, F_OK) != 0);
	assert_int_equal(tenant_end(looker), 0);
}

static void a_window_shows_the_slices_part(void **state)
{
	struct scene s = make_scene(*state, NULL);
	uint64_t held = 2 * CONTEXT_BYTES + 110 * MIB, total;

	expect(s.looker, OK, "bar1 0");
	total = tenant_number(s.looker, "total");
	assert_int_equal(total, 256 * GIB);
	assert_int_equal(tenant_number(s.looker, "used"), held);
	assert_int_equal(tenant_number(s.looker, "free"), total - held);
}

static void names_are_the_drivers_and_else_the_regions(void **state)
{
	struct node *node = *state;
	struct scene s = make_scene(node, NULL);
	struct inject_rule rule = {.symbol = "nvmlSystemGetProcessName",
		.tag = "*",
		.times = UINT64_MAX,
		.result = NOT_FOUND};

	expect(s.looker, OK, "name %d 200", s.one->pid);
	assert_true(shows(s.looker, "/client"));
	expect(s.looker, NOT_FOUND, "name 4194303 200");
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
	expect(s.looker, OK, "name %d 200", s.one->pid);
	assert_string_equal(s.looker->answer, " name=client");
	expect(s.looker, OK, "name %d 4", s.one->pid);
	assert_string_equal(s.looker->answer, " name=cli");
	expect(s.looker, NOT_FOUND, "name %d 200", s.other->pid);
	expect(s.looker, NOT_FOUND, "name %d 0", s.one->pid);
}

/* Both slices have worked half of the last second or so. */
static void make_busy(struct scene *s)
{
	struct machine *machine = s->a->node->machine;

	assert_int_equal(inject_set_kernel(machine, "work", 300 * UINT64_C(1000000)), 0);
	tenant_tell(s->one, "work work");
	tenant_tell(s->other, "work work");
	assert_int_equal(tenant_answer(s->one), OK);
	assert_int_equal(tenant_answer(s->other), OK);
}

static void samples_are_of_the_slice(void **state)
{
	struct scene s = make_scene(*state, NULL);

	expect(s.looker, NOT_FOUND, "samples 0 100");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	make_busy(&s);
	expect(s.looker, OK, "samples 0 100");
	assert_int_equal(tenant_number(s.looker, "count"), 1);
	assert_true(shows(s.looker, " count=1 info=0:1 %d:", s.one->pid));
	assert_true(shows(s.looker, " i%d:", s.one->pid));
	assert_false(shows(s.looker, "%d:", s.other->pid));
	tenant_kill(s.one, 9);
	expect(s.looker, NOT_FOUND, "samples 0 100");
}

static void how_busy_the_device_is_can_be_the_slices(void **state)
{
	struct scene s = make_scene(*state, NULL);
	struct tenant *own =
		tenant_start(*state, s.a, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	uint64_t device, slice;

	expect(own, OK, "busy 0");
	assert_int_equal(tenant_number(own, "gpu"), 0);
	make_busy(&s);
	expect(s.looker, OK, "busy 0");
	device = tenant_number(s.looker, "gpu");
	expect(own, OK, "busy 0");
	slice = tenant_number(own, "gpu");
	assert_in_range(slice, 1, 40);
	assert_true(device > slice);
	expect(own, OK, "busy 1");
	assert_int_equal(tenant_number(own, "gpu"), 0);
}

static void half_of_the_cores_is_all_there_is_to_a_slice_of_half(void **state)
{
	struct scene s = make_scene(*state, NULL);
	struct tenant *own =
		tenant_start(*state, s.a, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	FILE *region = fopen(s.a->region, "r+");
	uint64_t half = 50, whole;

	assert_non_null(region);
	make_busy(&s);
	expect(own, OK, "busy 0");
	whole = tenant_number(own, "gpu");
	fseek(region, offsetof(struct hami_region, sm_limit_percent), SEEK_SET);
	assert_int_equal(fwrite(&half, sizeof(half), 1, region), 1);
	assert_int_equal(fclose(region), 0);
	expect(own, OK, "busy 0");
	assert_true(tenant_number(own, "gpu") > whole + whole / 2);
	assert_true(tenant_number(own, "gpu") <= 100);
}

static void records_are_of_the_slice(void **state)
{
	struct scene s = make_scene(*state, "VGPU_SIM_NVML=accounting");

	expect(s.looker, INSUFFICIENT_SIZE, "accounts 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, INSUFFICIENT_SIZE, "accounts 0 1");
	expect(s.looker, OK, "accounts 0 8");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	assert_true(shows(s.looker, " %d:0", s.one->pid) && shows(s.looker, " %d:0", s.two->pid));
	expect(s.looker, OK, "accounts 1 8");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	expect(s.looker, OK, "account 0 %d", s.two->pid);
	assert_int_equal(tenant_number(s.looker, "most"), CONTEXT_BYTES + 10 * MIB);
	expect(s.looker, NOT_FOUND, "account 0 %d", s.other->pid);
	expect(s.looker, NOT_FOUND, "account 0 1");
}

static void records_that_are_not_kept_are_none(void **state)
{
	struct scene s = make_scene(*state, NULL);

	expect(s.looker, OK, "accounts 0 0");
	assert_int_equal(tenant_number(s.looker, "count"), 0);
	expect(s.looker, 3, "account 0 %d", s.two->pid);
	expect(s.looker, 3, "account 0 %d", s.other->pid);
}

static void without_a_quota_everything_is_the_drivers(void **state)
{
	static const char *const words[] = {"list nvmlDeviceGetComputeRunningProcesses 0 8",
		"list nvmlDeviceGetComputeRunningProcesses_v3 0 8", "details 0 0 8", "bar1 0",
		"samples 0 100", "busy 0", "accounts 0 8", "nulls 0", "oldinfo 0",
		"list nvmlDeviceGetComputeRunningProcesses_v2 0 1"};
	struct node *node = *state;
	struct scene s = make_scene(node, NULL);
	struct tenant *t, *bare;

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", "VGPU_SIM_NVML=accounting", NULL);
	node->is_without_library = false;
	t = tenant_start(node, NULL, "linked", "VGPU_SIM_NVML=accounting",
		"VGPU_SHOW_UTILIZATION=slice", NULL);
	expect(t, OK, "primary 0");
	expect(bare, OK, "primary 0");
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int r = tenant_ask(bare, "%s", words[i]);

		expect(t, r, "%s", words[i]);
		assert_string_equal(t->answer, bare->answer);
	}
	expect(t, OK, "list %s 0 8", compute_lists[0]);
	assert_int_equal(tenant_number(t, "count"), 5);
	assert_true(shows(t, " %d:", s.other->pid));
}

static void the_interfaces_of_32_bits_show_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", "100g");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc x 64m");
	expect(t, OK, "oldinfo 0");
	assert_int_equal(tenant_number(t, "device"), 2 * GIB);
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	assert_true(tenant_number(t, "free") <= 2 * GIB - CONTEXT_BYTES - 64 * MIB);
	assert_int_equal(tenant_number(t, "null"), INVALID_VALUE);
	expect(t, OK, "oldinfo 1");
	assert_int_equal(tenant_number(t, "device"), UINT32_MAX);
	assert_int_equal(tenant_number(t, "total"), UINT32_MAX);
	assert_int_equal(tenant_number(t, "free"), UINT32_MAX);
}

struct search {
	uint32_t pid, host_pid;
};

static void search_visit(const struct snapshot_member *m, void *argument)
{
	struct search *s = argument;

	if (m->pid == s->pid)
		s->host_pid = m->host_pid;
}

/* The PID by which an older driver lists the tenant, as the region has it; 0: not known. */
static uint32_t host_pid_of(const struct tenant *t)
{
	struct search s = {.pid = (uint32_t)t->pid};

	assert_int_equal(snapshot_visit(t->slice->region, NULL, search_visit, &s), 0);
	return s.host_pid;
}

static void an_older_drivers_pids_are_found_and_shown_as_the_slices_own(void **state)
{
	struct scene s = make_scene(*state, "VGPU_SIM_NVML=host-pids,accounting");

	assert_int_not_equal(host_pid_of(s.one), 0);
	assert_int_not_equal(host_pid_of(s.one), s.one->pid);
	assert_int_not_equal(host_pid_of(s.two), 0);
	assert_int_not_equal(host_pid_of(s.two), host_pid_of(s.one));
	expect(s.looker, OK, "list %s 0 8", compute_lists[2]);
	check_rows(&s);
	make_busy(&s);
	expect(s.looker, OK, "samples 0 100");
	assert_true(shows(s.looker, " count=1 info=0:1 %d:", s.one->pid));
	expect(s.looker, OK, "accounts 0 8");
	assert_int_equal(tenant_number(s.looker, "count"), 2);
	expect(s.looker, OK, "account 0 %d", s.one->pid);
	expect(s.looker, NOT_FOUND, "account 0 %d", host_pid_of(s.other));
	/* what no call announces is found by the figure under that PID: streams */
	s.a->slack_bytes = 0;
	for (unsigned i = 0; i < 8; i++)
		expect(s.one, OK, "stream s%u", i);
	expect(s.one, OUT_OF_MEMORY, "alloc y 4g");
	assert_true(slice_books(s.a, 0) >= slice_truth(s.a, 0));
	assert_true(slice_books(s.a, 0) < slice_truth(s.a, 0) + MIB);
}

static void two_that_begin_at_once_take_nobody_elses_figure(void **state)
{
	struct node *node = *state;
	struct slice *slices[2] = {
		slice_new(node, "a", "4g", NULL), slice_new(node, "b", "4g", NULL)};
	struct tenant *t[8];
	uint32_t pids[8];

	for (unsigned i = 0; i < 8; i++)
		t[i] = tenant_start(node, slices[i % 2], "linked", "VGPU_SIM_NVML=host-pids", NULL);
	for (unsigned i = 0; i < 8; i++)
		tenant_tell(t[i], "primary 0");
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(tenant_answer(t[i]), OK);
	for (unsigned i = 0; i < 8; i++) {
		pids[i] = host_pid_of(t[i]);
		/* the simulated driver makes up a PID that ends like the real one */
		assert_true(pids[i] == 0 || (pids[i] & 0x3fffff) == (uint32_t)t[i]->pid);
		expect(t[i], OK, "alloc x 10m");
	}
	for (unsigned i = 0; i < 2; i++)
		assert_true(slice_books(slices[i], 0) >= slice_truth(slices[i], 0));
}

static void a_child_of_fork_is_listed_by_itself(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", "VGPU_SIM_NVML=host-pids", NULL);
	uint32_t child;

	expect(t, OK, "fork");
	child = (uint32_t)tenant_number(t, "pid");
	expect(t, OK, "primary 0");
	expect(t, OK, "list %s 0 8", compute_lists[1]);
	assert_int_equal(tenant_number(t, "count"), 1);
	assert_true(shows(t, " %u:%llu:", child, (unsigned long long)CONTEXT_BYTES));
	expect(t, OK, "exit 0");
	expect(t, OK, "primary 0");
	expect(t, OK, "list %s 0 8", compute_lists[1]);
	assert_true(shows(t, " count=1 %d:", t->pid));
}

/* The folder of an NVML that has the oldest lists alone. */
static const char *old_nvml(void)
{
	static char folder[600];

	snprintf(folder, sizeof(folder), "%s", node_program("old_nvml/libnvidia-ml.so.1"));
	*strrchr(folder, '/') = '\0';
	return folder;
}

static void what_the_driver_lacks_stays_absent(void **state)
{
	static const char *const absent[] = {"nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetRunningProcessDetailList",
		"nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo",
		"nvmlDeviceGetAccountingPids", "nvmlDeviceGetBAR1MemoryInfo",
		"nvmlDeviceGetMemoryInfo_v2", "nvmlSystemGetProcessName"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t, *looker;

	node->driver = old_nvml();
	t = tenant_new(slice);
	looker = tenant_start(node, slice, "found-dlopen", "VGPU_SHOW_UTILIZATION=slice", NULL);
	for (unsigned i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		expect(looker, OK, "has %s", absent[i]);
		assert_int_equal(tenant_number(looker, "has"), 0);
	}
	expect(looker, OK, "has %s", compute_lists[0]);
	assert_int_equal(tenant_number(looker, "has"), 1);
	/* what is there works, and what we ask for ourselves is asked in the oldest form */
	expect(t, OK, "alloc x 100m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 100 * MIB);
	expect(looker, OK, "list %s 0 8", compute_lists[0]);
	assert_int_equal(tenant_number(looker, "count"), 1);
	assert_true(
		shows(looker, " %d:%llu", t->pid, (unsigned long long)(CONTEXT_BYTES + 100 * MIB)));
	/* nobody tells how busy processes are: the device's own figure */
	expect(looker, OK, "busy 0");
}

static const char *smi(struct slice *slice, const char *form)
{
	static char output[16384];
	char program[600], word[] = "smi", text[64];
	char *argv[] = {program, word, form ? text : NULL, NULL};

	snprintf(program, sizeof(program), "%s", node_program("vgpu-sim"));
	snprintf(text, sizeof(text), "%s", form ? form : "");
	assert_int_equal(node_run(slice->node, slice, argv, output, sizeof(output)), 0);
	return output;
}

static bool has_pid(const char *output, const char *before, pid_t pid, const char *after)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%d%s", before, pid, after);
	return strstr(output, text) != NULL;
}

/* What a person sees who looks about in a slice, in each form of the program. */
static void a_tool_in_a_slice_shows_the_slice(void **state)
{
	static const char *const forms[][3] = {
		{NULL, " ", " "},
		{"-q", ": ", "\n"},
		{"pmon", " ", " "},
		{"--query-compute-apps=pid,used_memory", "\n", ", "},
	};
	struct scene s = make_scene(*state, NULL);

	make_busy(&s);
	for (unsigned i = 0; i < 4; i++) {
		const char *output = smi(s.a, forms[i][0]);

		assert_true(has_pid(output, forms[i][1], s.one->pid, forms[i][2]));
		assert_true(has_pid(output, forms[i][1], s.two->pid, forms[i][2]));
		assert_false(has_pid(output, forms[i][1], s.other->pid, forms[i][2]));
	}
	assert_non_null(strstr(smi(s.a, NULL), "1146 /    4096 MiB"));
	assert_non_null(strstr(smi(s.b, NULL), "1542 /    4096 MiB"));
	assert_false(has_pid(smi(s.b, "-q"), ": ", s.one->pid, "\n"));
	assert_non_null(strstr(smi(s.a, "-q"), "Used                              : 1146 MiB"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(lists_hold_the_slices_processes_alone),
		test_with_node(room_and_count_are_as_the_driver_has_them),
		test_with_node(what_is_null_is_the_drivers_to_refuse),
		test_with_node(the_dead_vanish_and_the_looker_leaves_no_trace),
		test_with_node(looking_makes_no_region),
		test_with_node(a_window_shows_the_slices_part),
		test_with_node(names_are_the_drivers_and_else_the_regions),
		test_with_node(samples_are_of_the_slice),
		test_with_node(how_busy_the_device_is_can_be_the_slices),
		test_with_node(half_of_the_cores_is_all_there_is_to_a_slice_of_half),
		test_with_node(records_are_of_the_slice),
		test_with_node(records_that_are_not_kept_are_none),
		test_with_node(without_a_quota_everything_is_the_drivers),
		test_with_node(the_interfaces_of_32_bits_show_the_quota),
		test_with_node(an_older_drivers_pids_are_found_and_shown_as_the_slices_own),
		test_with_node(two_that_begin_at_once_take_nobody_elses_figure),
		test_with_node(a_child_of_fork_is_listed_by_itself),
		test_with_node(what_the_driver_lacks_stays_absent),
		test_with_node(a_tool_in_a_slice_shows_the_slice),
	};

	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
