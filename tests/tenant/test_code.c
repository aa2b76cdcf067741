/* SPDX-License-Identifier: Apache-2.0 */
/* What code takes: data of modules and libraries, frames of kernels, the device's runtime, streams. */
#include "tests/tenant/tenant.h"

#include <stdio.h>

#include "gpu/abi/cuda.h"

/* Of the board that the tests use: frames of all threads, for each byte of a frame (H200). */
#define FRAME_BYTES(frame)   ((UINT64_C(frame) * 2048 * 132 + 2 * MIB - 1) / (2 * MIB) * (2 * MIB))
#define LOCAL_BYTES(frame)   (FRAME_BYTES(frame) - FRAME_BYTES(1024))
#define HEAP_RUNTIME_BYTES   (138 * MIB)
#define PRINTF_RUNTIME_BYTES (64 * MIB)

static void expect_held(struct slice *slice, uint64_t beside_context)
{
	uint64_t held = slice_agreed(slice, 0);

	if (held != CONTEXT_BYTES + beside_context)
		print_message(
			"held %.1f MiB beside the context\n", ((double)held - CONTEXT_BYTES) / MIB);
	assert_int_equal(held, CONTEXT_BYTES + beside_context);
}

static void data_of_a_module_is_charged_until_it_is_unloaded(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "module m data=100m");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "launch m");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "unload m");
	expect_held(slice, 0);
	expect(t, OK, "alloc a 500m");
	assert_int_equal(tenant_end(t), 0);
}

static void a_module_that_does_not_fit_is_refused(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc a 400m");
	expect(t, OUT_OF_MEMORY, "module m data=200m");
	expect_held(slice, 400 * MIB);
	expect(t, OK, "module m data=100m");
	expect_held(slice, 500 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_library_is_charged_when_it_is_used(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l data=64m");
	expect_held(slice, 0);
	expect(t, OK, "uselibrary l data");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "uselibrary l");
	expect(t, OK, "launch l");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "endlibrary l");
	expect_held(slice, 0);
	expect(t, OK, "library l data=64m");
	expect(t, OK, "launch l");
	expect_held(slice, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_library_that_tells_nothing_is_charged_or_refused(void **state)
{
	static const char *const uses[] = {"uselibrary l data", "uselibrary l", "launch l"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	node->is_loud = true;
	slice->slack_bytes = 600 * MIB; /* as long as it is loaded */
	for (int i = 0; i < 3; i++) {
		expect(t, OK, "library l fat data=64m");
		expect(t, OK, "asklibrary l");
		expect(t, OK, "%s", uses[i]);
		expect_held(slice, 64 * MIB);
		expect(t, OK, "asklibrary l");
		expect(t, OK, "endlibrary l");
		expect_held(slice, 0);
		/* Far too large: it is unloaded, and all that is left is to unload it. */
		expect(t, OK, "library l fat data=600m");
		expect(t, OUT_OF_MEMORY, "%s", uses[i]);
		expect_held(slice, 0);
		expect(t, OUT_OF_MEMORY, "asklibrary l");
		expect(t, OUT_OF_MEMORY, "uselibrary l module");
		expect(t, OUT_OF_MEMORY, "launch l");
		expect(t, OK, "endlibrary l");
		expect_held(slice, 0);
	}
	/* A little too large: it stays, and can be used when there is room. */
	expect(t, OK, "alloc a 448m");
	expect(t, OK, "library l fat data=64m");
	expect(t, OUT_OF_MEMORY, "launch l");
	expect_held(slice, 512 * MIB);
	expect(t, OUT_OF_MEMORY, "alloc b 2m");
	expect(t, OK, "asklibrary l");
	expect(t, OK, "free a");
	expect(t, OK, "launch l");
	expect_held(slice, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* A driver gives an address out again: what it names then has nothing to do with the library that is gone. */
static void a_new_function_is_not_taken_for_a_kernel_that_is_gone(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	node->is_loud = true;
	slice->slack_bytes = 600 * MIB; /* as long as it is loaded */
	for (int i = 0; i < 4; i++) {
		expect(t, OK, "library l fat data=600m");
		expect(t, OUT_OF_MEMORY, "launch l");
		expect(t, OK, "endlibrary l");
	}
	for (int i = 0; i < 40; i++) {
		expect(t, OK, "module m");
		expect(t, OK, "launch m");
		expect(t, OK, "unload m");
	}
	assert_int_equal(tenant_end(t), 0);
}

/* Of its second kernel only the code is new. */
static void a_library_that_was_used_is_not_reserved_for_once_more(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l data=1g");
	expect(t, OK, "launch l");
	expect_held(slice, GIB);
	expect(t, OK, "uselibrary l");
	expect(t, OK, "uselibrary l module");
	expect(t, OK, "uselibrary l data");
	expect_held(slice, GIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_library_is_known_after_its_first_use(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l fat data=600m");
	expect(t, OK, "launch l");
	expect_held(slice, 600 * MIB);
	expect(t, OK, "newctx c 0");
	expect_held(slice, CONTEXT_BYTES + 600 * MIB);
	expect(t, OUT_OF_MEMORY, "launch l");
	assert_int_equal(slice_peak(slice, 0), 2 * CONTEXT_BYTES + 600 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* Where NVML has no figure, and what another process frees meanwhile is seen as well. */
static void a_figure_of_the_device_is_not_remembered(void **state)
{
	struct node *node = *state;
	struct inject_rule silent = {
		.symbol = "nvmlDeviceGetComputeRunningProcesses_v3", .tag = "*", .result = 999};
	struct inject_rule slow = {
		.symbol = "cuLibraryGetGlobal", .tag = "a", .times = 1, .delay_ns = 300000000};
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t, *other;

	assert_true(inject_add_rule(node->machine, &silent) >= 0);
	other = tenant_new(slice_new(node, "b", "4g", NULL));
	assert_true(inject_add_rule(node->machine, &slow) >= 0);
	t = tenant_new(slice);
	expect(other, OK, "alloc x 600m");
	for (int i = 0; i < 4; i++)
		expect(t, OK, "module m data=4m");
	expect(t, OK, "library l fat data=64m");
	tenant_tell(t, "uselibrary l data");
	expect(other, OK, "sleep 100");
	expect(other, OK, "free x");
	assert_int_equal(tenant_answer(t), OK);
	expect(t, OK, "newctx c 0");
	expect(t, OK, "uselibrary l data");
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(other), 0);
}

/* Where NVML has no figure; what is charged to one context ends with that. */
static void an_end_of_a_context_gives_back_nothing_of_another_one(void **state)
{
	struct node *node = *state;
	struct inject_rule silent = {
		.symbol = "nvmlDeviceGetComputeRunningProcesses_v3", .tag = "*", .result = 999};
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t;

	assert_true(inject_add_rule(node->machine, &silent) >= 0);
	t = tenant_new(slice);
	for (int i = 0; i < 5; i++) {
		expect(t, OK, "module s data=4m");
		expect(t, OK, "unload s");
	}
	expect(t, OK, "module m data=64m");
	expect(t, OK, "newctx c 0");
	expect(t, OK, "module n data=32m");
	assert_true(slice_books(slice, 0) >= slice_truth(slice, 0));
	expect(t, OK, "endctx c");
	assert_in_range(
		slice_books(slice, 0), slice_truth(slice, 0), slice_truth(slice, 0) + 16 * MIB);
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

/* Where NVML has no figure; of the same slice, and of another one. */
static void what_others_take_during_an_unload_is_not_charged(void **state)
{
	struct node *node = *state;
	struct inject_rule silent = {
		.symbol = "nvmlDeviceGetComputeRunningProcesses_v3", .tag = "*", .result = 999};
	struct inject_rule slow = {.symbol = "cuModuleUnload", .tag = "a", .delay_ns = 300000000};
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t, *others[2];

	assert_true(inject_add_rule(node->machine, &silent) >= 0);
	assert_true(inject_add_rule(node->machine, &slow) >= 0);
	t = tenant_new(slice);
	others[0] = tenant_new(slice);
	others[1] = tenant_new(slice_new(node, "b", "4g", NULL));
	for (unsigned i = 0; i < 2; i++) {
		for (int k = 0; k < 6; k++)
			expect(t, OK, "module m%d data=4m", k);
		expect(others[i], OK, "primary 0");
		tenant_tell(t, "unload m0");
		expect(others[i], OK, "sleep 100");
		expect(others[i], OK, "alloc x 600m");
		assert_int_equal(tenant_answer(t), OK);
		assert_in_range(slice_books(slice, 0), slice_truth(slice, 0),
			slice_truth(slice, 0) + 100 * MIB);
		expect(others[i], OK, "free x");
	}
	assert_int_equal(tenant_end(others[1]), 0);
	assert_int_equal(tenant_end(others[0]), 0);
	assert_int_equal(tenant_end(t), 0);
}

/* Nor does anybody pay for others for longer than NVML fails. */
static void a_figure_that_failed_for_a_while_is_asked_for_again(void **state)
{
	struct node *node = *state;
	struct inject_rule silent = {
		.symbol = "nvmlDeviceGetComputeRunningProcesses_v3", .tag = "*", .result = 999};
	struct inject_rule slow = {
		.symbol = "cuModuleLoadData", .tag = "a", .times = 1, .delay_ns = 300000000};
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t, *other = tenant_new(slice_new(node, "b", "4g", NULL));

	assert_true(inject_add_rule(node->machine, &silent) >= 0);
	t = tenant_new(slice);
	for (int i = 0; i < 10; i++)
		expect(t, OK, "module m%d data=4m", i);
	assert_true(inject_add_rule(node->machine, &slow) >= 0);
	tenant_tell(t, "module n data=64m");
	expect(other, OK, "sleep 100");
	expect(other, OK, "alloc x 600m");
	assert_int_equal(tenant_answer(t), OK);
	assert_true(slice_books(slice, 0) >= slice_truth(slice, 0) + 500 * MIB);
	inject_clear_rules(node->machine);
	expect(t, OK, "sleep 1050");
	/* What is less is believed when it was found twice. */
	expect(t, OUT_OF_MEMORY, "alloc a 8g");
	expect(t, OK, "sleep 50");
	expect(t, OUT_OF_MEMORY, "alloc a 8g");
	assert_int_equal(slice_agreed(slice, 0), slice_truth(slice, 0));
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(other), 0);
}

static void a_launch_is_refused_before_its_frames_are_taken(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "module small frame=4096");
	expect(t, OK, "module big frame=65536");
	expect_held(slice, 0);
	expect(t, OK, "launch small");
	expect_held(slice, LOCAL_BYTES(4096));
	expect(t, OK, "launch small");
	expect_held(slice, LOCAL_BYTES(4096));
	expect(t, OUT_OF_MEMORY, "launch big");
	expect(t, OUT_OF_MEMORY, "launch big");
	expect_held(slice, LOCAL_BYTES(4096));
	expect(t, OK, "launch small");
	assert_int_equal(slice_peak(slice, 0), CONTEXT_BYTES + LOCAL_BYTES(4096));
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void the_frames_of_a_librarys_kernel_count_as_well(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l frame=16384");
	expect(t, OUT_OF_MEMORY, "launch l");
	expect_held(slice, 0);
	slice_change(slice, "8g", NULL);
	expect(t, OK, "launch l");
	expect_held(slice, LOCAL_BYTES(16384));
	assert_int_equal(tenant_end(t), 0);
}

static void a_stack_limit_takes_and_gives_at_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "limit stack 8192");
	expect_held(slice, LOCAL_BYTES(8192));
	expect(t, OUT_OF_MEMORY, "limit stack 65536");
	expect_held(slice, LOCAL_BYTES(8192));
	expect(t, OK, "limit stack 2048");
	expect_held(slice, LOCAL_BYTES(2048));
	expect(t, OK, "module m frame=4096");
	expect(t, OK, "launch m");
	expect(t, OK, "limit stack 1024");
	expect_held(slice, 0);
	/* A function that was launched before takes room again. */
	expect(t, OK, "launch m");
	expect_held(slice, LOCAL_BYTES(4096));
	assert_int_equal(tenant_end(t), 0);
}

static void every_context_has_frames_of_its_own(void **state)
{
	struct slice *slice = slice_new(*state, "a", "8g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library l frame=4096");
	expect(t, OK, "launch l");
	expect(t, OK, "newctx c 0");
	expect(t, OK, "launch l");
	expect_held(slice, CONTEXT_BYTES + 2 * LOCAL_BYTES(4096));
	expect(t, OK, "endctx c");
	expect_held(slice, LOCAL_BYTES(4096));
	assert_int_equal(tenant_end(t), 0);
}

static void the_devices_heap_is_charged_at_its_first_use(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "limit heap 256m");
	expect_held(slice, 0);
	expect(t, OK, "module m heap");
	expect_held(slice, HEAP_RUNTIME_BYTES);
	expect(t, OK, "launch m");
	expect_held(slice, HEAP_RUNTIME_BYTES + 258 * MIB);
	expect(t, OK, "unload m");
	expect_held(slice, HEAP_RUNTIME_BYTES + 258 * MIB);
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_heap_that_does_not_fit_is_refused_before_it_is_taken(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "limit heap 512m");
	expect(t, OK, "module m heap");
	expect(t, OUT_OF_MEMORY, "launch m");
	expect_held(slice, HEAP_RUNTIME_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void room_for_frames_is_not_taken_for_the_heap(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "limit heap 256m");
	expect(t, OK, "module m heap");
	expect(t, OK, "module f frame=4096");
	expect(t, OK, "launch f");
	slice_change(slice, "1700m", NULL);
	expect(t, OK, "sleep 100"); /* a change is looked for every 50 ms */
	expect(t, OUT_OF_MEMORY, "launch m");
	expect_held(slice, HEAP_RUNTIME_BYTES + LOCAL_BYTES(4096));
	assert_int_equal(tenant_end(t), 0);
}

static void the_devices_printf_is_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "module m printf");
	expect_held(slice, PRINTF_RUNTIME_BYTES);
	expect(t, OK, "launch m");
	expect_held(slice, PRINTF_RUNTIME_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void streams_are_charged_as_they_come(void **state)
{
	struct slice *slice = slice_new(*state, "a", "600m", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t held;

	slice->slack_bytes = 64 * KIB;
	expect(t, OUT_OF_MEMORY, "streams 1000");
	assert_true(tenant_number(t, "count") > 100);
	held = slice_agreed(slice, 0);
	assert_true(held <= 600 * MIB && held + 6 * MIB > 600 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void green_contexts_are_charged_as_they_come(void **state)
{
	struct slice *slice = slice_new(*state, "a", "600m", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t held;

	slice->slack_bytes = 64 * KIB;
	expect(t, OUT_OF_MEMORY, "greens 1000");
	assert_true(tenant_number(t, "count") > 5);
	held = slice_agreed(slice, 0);
	assert_true(held > CONTEXT_BYTES && held <= 600 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_launch_of_nothing_gets_the_drivers_own_error(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	/* the first call of all: the driver has not been asked for a function yet */
	expect(t, CUDA_ERROR_NOT_INITIALIZED, "launch none");
	expect(t, OK, "primary 0");
	expect(t, CUDA_ERROR_INVALID_HANDLE, "launch none");
	expect(t, OUT_OF_MEMORY, "fill 2m");
	expect(t, CUDA_ERROR_INVALID_HANDLE, "launch none");
	assert_int_equal(tenant_end(t), 0);
}

static void modules_are_refused_when_the_quota_is_full(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "fillcode 100m");
	assert_int_equal(tenant_number(t, "count"), 5);
	expect_held(slice, 500 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void two_processes_share_what_is_left(void **state)
{
	struct slice *slice = slice_new(*state, "a", "3g", NULL);
	struct tenant *a = tenant_new(slice), *b = tenant_new(slice);

	expect(a, OK, "module m frame=4096");
	expect(b, OK, "module m frame=4096");
	expect(a, OK, "launch m");
	expect(b, OK, "launch m");
	expect(a, OK, "module n frame=8192");
	expect(a, OUT_OF_MEMORY, "launch n");
	assert_int_equal(tenant_kill(b, 9), 9);
	expect(a, OK, "launch n");
	expect_held(slice, LOCAL_BYTES(8192));
	assert_int_equal(tenant_end(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(data_of_a_module_is_charged_until_it_is_unloaded),
		test_with_node(a_module_that_does_not_fit_is_refused),
		test_with_node(a_library_is_charged_when_it_is_used),
		test_with_node(a_library_that_tells_nothing_is_charged_or_refused),
		test_with_node(a_new_function_is_not_taken_for_a_kernel_that_is_gone),
		test_with_node(a_library_that_was_used_is_not_reserved_for_once_more),
		test_with_node(a_library_is_known_after_its_first_use),
		test_with_node(a_figure_of_the_device_is_not_remembered),
		test_with_node(an_end_of_a_context_gives_back_nothing_of_another_one),
		test_with_node(what_others_take_during_an_unload_is_not_charged),
		test_with_node(a_figure_that_failed_for_a_while_is_asked_for_again),
		test_with_node(a_launch_is_refused_before_its_frames_are_taken),
		test_with_node(the_frames_of_a_librarys_kernel_count_as_well),
		test_with_node(a_stack_limit_takes_and_gives_at_once),
		test_with_node(every_context_has_frames_of_its_own),
		test_with_node(the_devices_heap_is_charged_at_its_first_use),
		test_with_node(a_heap_that_does_not_fit_is_refused_before_it_is_taken),
		test_with_node(room_for_frames_is_not_taken_for_the_heap),
		test_with_node(the_devices_printf_is_charged),
		test_with_node(streams_are_charged_as_they_come),
		test_with_node(green_contexts_are_charged_as_they_come),
		test_with_node(a_launch_of_nothing_gets_the_drivers_own_error),
		test_with_node(modules_are_refused_when_the_quota_is_full),
		test_with_node(two_processes_share_what_is_left),
	};

	return cmocka_run_group_tests_name("code", tests, NULL, NULL);
}
