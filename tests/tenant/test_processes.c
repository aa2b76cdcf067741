/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that NVML shows a tenant are its slice's. */
#include "tests/tenant/scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void without_a_quota_everything_is_the_drivers(void **state)
{
	static const char *const words[] = {"list nvmlDeviceGetComputeRunningProcesses 0 8",
		"list nvmlDeviceGetComputeRunningProcesses_v3 0 8", "details 0 0 8", "bar1 0",
		"samples 0 100", "busy 0", "accounts 0 8", "sessions 0 8", "nulls 0", "oldinfo 0",
		"list nvmlDeviceGetComputeRunningProcesses_v2 0 1"};
	struct node *node = *state;
	struct scene s = make_scene(node, NULL);
	struct tenant *t, *bare;

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", "VGPU_SIM_NVML=accounting,sessions", NULL);
	node->is_without_library = false;
	t = tenant_start(node, NULL, "linked", "VGPU_SIM_NVML=accounting,sessions",
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

static void processes_in_namespaces_of_their_own_see_themselves(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "8g", NULL);
	struct tenant *inner[2], *outside;

	if (geteuid() != 0) {
		print_message("skipped: needs root to make PID namespaces\n");
		skip();
	}
	node->is_in_namespace = true;
	for (unsigned i = 0; i < 2; i++)
		inner[i] = tenant_start(node, slice, "linked", NULL);
	node->is_in_namespace = false;
	for (unsigned i = 0; i < 2; i++) {
		if (tenant_ask(inner[i], "primary 0") < 0) {
			print_message("skipped: no PID namespaces here\n");
			skip();
		}
		expect(inner[i], OK, "alloc x %u00m", i + 1);
	}
	outside = tenant_new(slice);
	for (unsigned i = 0; i < 2; i++) {
		expect(inner[i], OK, "list %s 0 8", compute_lists[2]);
		assert_int_equal(tenant_number(inner[i], "count"), 1);
		assert_true(shows(inner[i],
			" 1:%llu:", (unsigned long long)(CONTEXT_BYTES + (i + 1) * 100 * MIB)));
	}
	expect(outside, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(outside, "count"), 1);
	assert_true(shows(outside, " %d:", outside->pid));
	expect(outside, OK, "nvml 0");
	assert_int_equal(tenant_number(outside, "used"), 3 * CONTEXT_BYTES + 300 * MIB);
}

static void an_unlimited_slice_sees_all_memory_and_its_own_processes(void **state)
{
	struct node *node = *state;
	struct scene s = make_scene(node, NULL);
	struct slice *slice = slice_new(node, "c", "unlimited", NULL);
	struct tenant *t = tenant_new(slice), *bare;

	expect(t, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(t, "count"), 1);
	assert_true(shows(t, " %d:", t->pid));
	expect(t, OK, "bar1 0");
	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	expect(bare, OK, "bar1 0");
	assert_string_equal(t->answer, bare->answer);
	assert_int_equal(tenant_end(s.looker), 0);
}

static void a_slice_whose_share_is_broken_sees_nobody_elses(void **state)
{
	struct node *node = *state;
	struct scene s = make_scene(node, NULL);
	struct slice *slice = slice_new(node, "c", "1g", NULL);
	char setting[400];
	struct tenant *t;

	slice_write(slice, "vgpu-share 1\ndevice broken\nend\n");
	snprintf(setting, sizeof(setting), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s", slice->region);
	node->is_loud = true;
	t = tenant_start(node, slice, "found-dlopen", setting, NULL);
	expect(t, OK, "list %s 0 8", compute_lists[2]);
	assert_int_equal(tenant_number(t, "count"), 0);
	make_busy(&s);
	expect(t, NOT_FOUND, "samples 0 100");
	expect(t, OK, "bar1 0");
	assert_int_equal(tenant_number(t, "used"), 0);
	expect(t, OK, "nvml 0");
	assert_string_equal(t->answer, " total=0 used=0 free=0");
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
		test_with_node(without_a_quota_everything_is_the_drivers),
		test_with_node(the_interfaces_of_32_bits_show_the_quota),
		test_with_node(a_tool_in_a_slice_shows_the_slice),
		test_with_node(processes_in_namespaces_of_their_own_see_themselves),
		test_with_node(an_unlimited_slice_sees_all_memory_and_its_own_processes),
		test_with_node(a_slice_whose_share_is_broken_sees_nobody_elses),
	};

	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
