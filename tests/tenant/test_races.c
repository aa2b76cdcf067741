/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread refers to while another one lets it go. The driver sleeps at the beginning of one of the
 * two calls, so that the other one is made in between. Whatever they answer, nothing is held uncharged.
 */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <unistd.h>

#define SLEEP_NS  300000000
#define PAUSE_US  100000
#define SECOND_US 1500000
#define KERNEL_NS 5000000000

/* The next call of the function sleeps in the driver. */
static void delay(struct node *node, const char *symbol)
{
	struct inject_rule rule = {.tag = "*", .times = 1, .delay_ns = SLEEP_NS};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
}

/* Tells the other thread; the call is in the driver when this returns. */
static void tell_aside(struct tenant *t, const char *command)
{
	expect(t, OK, "aside %s", command);
	usleep(PAUSE_US);
}

static void expect_all_charged(struct slice *slice)
{
	assert_true(slice_truth(slice, 0) <= slice_books(slice, 0));
}

/* First one call with the other one in between, then the other way round. */
static void race(struct node *node, const char *const prepare[], const char *refer,
	const char *refer_symbol, const char *end, const char *end_symbol)
{
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	const char *const calls[2][3] = {{end, end_symbol, refer}, {refer, refer_symbol, end}};

	for (unsigned i = 0; i < 2; i++) {
		struct tenant *t = tenant_new(slice);

		for (unsigned k = 0; prepare[k]; k++)
			expect(t, OK, "%s", prepare[k]);
		delay(node, calls[i][1]);
		tell_aside(t, calls[i][0]);
		tenant_ask(t, "%s", calls[i][2]);
		expect_all_charged(slice);
		tenant_ask(t, "joined");
		expect_all_charged(slice);
		inject_clear_rules(node->machine);
		assert_int_equal(tenant_end(t), 0);
		assert_int_equal(slice_books(slice, 0), 0);
	}
}

/* The thread is in the driver, within a call of ours, when it is cancelled. */
static void cancel_in(struct node *node, bool is_hasty)
{
	static const char *const calls[][3] = {
		{"alloc a 64m", "cuMemAlloc_v2", "alloc b 64m"},
		{"free a", "cuMemFree_v2", "free b"},
		{"uselibrary k data", "cuLibraryGetGlobal", "uselibrary l data"},
		{"async c 64m", "cuMemAllocAsync", "async d 64m"},
		{"newctx e 0", "cuCtxCreate_v2", "alloc b 64m"},
	};
	struct slice *slice = slice_new(node, is_hasty ? "b" : "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "library k fat data=64m");
	expect(t, OK, "library l fat data=64m");
	if (is_hasty)
		expect(t, OK, "hasty");
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (i == 1)
			expect(t, OK, "alloc a 64m");
		delay(node, calls[i][1]);
		tell_aside(t, calls[i][0]);
		expect(t, OK, "cancel");
		tenant_ask(t, "joined");
		inject_clear_rules(node->machine);
		slice_agreed(slice, 0);
		expect(t, OK, "%s", calls[i][2]);
		slice_agreed(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(slice_books(slice, 0), 0);
}

static void a_thread_that_is_cancelled_leaves_nothing_half_done(void **state)
{
	cancel_in(*state, false);
	cancel_in(*state, true);
}

static void a_handle_that_is_released_is_not_exported_past_the_books(void **state)
{
	const char *const prepare[] = {"createx h 512m", NULL};

	race(*state, prepare, "export f h", "cuMemExportToShareableHandle", "release h",
		"cuMemRelease");
}

static void a_range_that_is_freed_is_not_registered_past_the_books(void **state)
{
	const char *const prepare[] = {"alloc p 512m", NULL};

	race(*state, prepare, "range f p 512m", "cuMemGetHandleForAddressRange", "free p",
		"cuMemFree_v2");
}

static void a_mapping_that_goes_is_not_registered_past_the_books(void **state)
{
	const char *const prepare[] = {"create h 512m", "reserve v 512m", "map v 0 512m h",
		"access v 0 512m", "release h", NULL};

	race(*state, prepare, "range f v 512m", "cuMemGetHandleForAddressRange", "unmap v 0 512m",
		"cuMemUnmap");
}

static void a_mapping_that_goes_is_not_retained_past_the_books(void **state)
{
	const char *const prepare[] = {
		"create h 512m", "reserve v 512m", "map v 0 512m h", "release h", NULL};

	race(*state, prepare, "retain k v", "cuMemRetainAllocationHandle", "unmap v 0 512m",
		"cuMemUnmap");
}

static void a_handle_that_is_released_is_not_mapped_past_the_books(void **state)
{
	const char *const prepare[] = {"create h 512m", "reserve v 512m", NULL};

	race(*state, prepare, "map v 0 512m h", "cuMemMap", "release h", "cuMemRelease");
}

static void what_goes_is_not_bound_past_the_books(void **state)
{
	const char *const prepare[] = {"multicast o 512m", "create h 512m", NULL};
	const char *const by_address[] = {"multicast o 512m", "create h 512m", "reserve v 512m",
		"map v 0 512m h", "release h", NULL};

	race(*state, prepare, "bind o 0 h 512m", "cuMulticastBindMem", "release h", "cuMemRelease");
	race(*state, prepare, "bind o 0 h 512m", "cuMulticastBindMem", "release o", "cuMemRelease");
	race(*state, by_address, "bindat o 0 v 512m", "cuMulticastBindMem", "unmap v 0 512m",
		"cuMemUnmap");
	race(*state, prepare, "bind o 0 h 512m 0", "cuMulticastBindMem_v2", "release h",
		"cuMemRelease");
	race(*state, by_address, "bindat o 0 v 512m 0", "cuMulticastBindMem_v2", "unmap v 0 512m",
		"cuMemUnmap");
}

static void what_is_bound_is_not_unbound_past_the_books(void **state)
{
	const char *const prepare[] = {
		"multicast o 512m", "create h 512m", "bind o 0 h 512m", "release h", NULL};
	const char *const held[] = {"multicast o 512m", "create h 512m", "bind o 0 h 512m", NULL};

	race(*state, prepare, "unbind o 0 512m", "cuMulticastUnbind", "release o", "cuMemRelease");
	race(*state, prepare, "unbind o 0 512m", "cuMulticastUnbind", "unbind o 0 512m",
		"cuMulticastUnbind");
	race(*state, held, "bind o 0 h 512m", "cuMulticastBindMem", "unbind o 0 512m",
		"cuMulticastUnbind");
	race(*state, held, "unbind o 0 512m", "cuMulticastUnbind", "release h", "cuMemRelease");
}

/* A thread unmaps a range and maps there again while another one unmaps it: what is mapped is what the books have there. */
static void a_range_that_is_mapped_again_is_charged_for_what_is_mapped(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "create h 512m");
	expect(t, OK, "reserve v 512m");
	expect(t, OK, "map v 0 512m h");
	delay(node, "cuMemUnmap");
	tell_aside(t, "unmap v 0 512m");
	expect(t, OK, "unmap v 0 512m");
	expect(t, OK, "map v 0 512m h");
	expect(t, OK, "joined");
	expect(t, OK, "release h");
	assert_int_equal(slice_books(slice, 0), slice_truth(slice, 0));
	expect(t, OK, "unmap v 0 512m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	inject_clear_rules(node->machine);
	assert_int_equal(tenant_end(t), 0);
}

/* What a descriptor keeps is not taken for free because another thread frees as much at that instant. */
static void memory_that_is_kept_stays_charged_beside_another_free(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc p 512m");
	expect(t, OK, "range f p 512m");
	expect(t, OK, "alloc q 512m");
	delay(node, "cuMemFree_v2");
	tell_aside(t, "free p");
	expect(t, OK, "free q");
	expect(t, OK, "joined");
	expect_all_charged(slice);
	inject_clear_rules(node->machine);
	assert_int_equal(tenant_end(t), 0);
}

/* A refusal that another thread's call has nothing to do with leaves the charge as it was. */
static void what_the_driver_refuses_leaves_nothing_pinned(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	struct inject_rule rule = {.tag = "*", .result = 719};

	expect(t, OK, "createx h 512m");
	expect(t, OK, "reserve v 512m");
	expect(t, OK, "map v 0 512m h");
	expect(t, OK, "alloc p 512m");
	for (unsigned i = 0; i < 2; i++) {
		snprintf(rule.symbol, sizeof(rule.symbol), "%s",
			i ? "cuMemGetHandleForAddressRange" : "cuMemExportToShareableHandle");
		assert_true(inject_add_rule(node->machine, &rule) >= 0);
	}
	expect(t, 719, "export f h");
	expect(t, 719, "range f v 512m");
	expect(t, 719, "range f p 512m");
	expect(t, OK, "free p");
	expect(t, OK, "unmap v 0 512m");
	expect(t, OK, "release h");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	inject_clear_rules(node->machine);
	assert_int_equal(tenant_end(t), 0);
}

/* The driver refuses to unmap while another thread releases the handle: the mapping is there still. */
static void a_mapping_that_the_driver_keeps_is_charged_beside_a_release(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	struct inject_rule rule = {.tag = "*",
		.symbol = "cuMemUnmap",
		.times = 1,
		.result = 719,
		.delay_ns = SLEEP_NS};

	expect(t, OK, "create h 512m");
	expect(t, OK, "reserve v 512m");
	expect(t, OK, "map v 0 512m h");
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
	tell_aside(t, "unmap v 0 512m");
	expect(t, OK, "release h");
	expect_all_charged(slice);
	expect(t, 719, "joined");
	expect_all_charged(slice);
	expect(t, OK, "unmap v 0 512m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	inject_clear_rules(node->machine);
	assert_int_equal(tenant_end(t), 0);
}

/* One thread asks for the event of what is unmapped in a stream while another ends the stream's context. */
static void what_waits_for_a_stream_comes_back_with_its_context(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	assert_int_equal(inject_set_kernel(node->machine, "k", KERNEL_NS), 0);
	expect(t, OK, "newctx c 0");
	expect(t, OK, "stream s");
	expect(t, OK, "module m");
	expect(t, OK, "array a 4096x4096,sparse");
	expect(t, OK, "create h 512m");
	expect(t, OK, "tile a 0 h s");
	expect(t, OK, "launch m s nowait");
	expect(t, OK, "untile a 0 s");
	expect(t, OK, "release h");
	expect(t, OK, "primary 0");
	delay(node, "cuEventQuery");
	tell_aside(t, "sync");
	expect(t, OK, "endctx c");
	expect(t, OK, "joined");
	expect(t, OK, "sync");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	inject_clear_kernels(node->machine);
	inject_clear_rules(node->machine);
	assert_int_equal(tenant_end(t), 0);
}

/* A primary context is retained by one thread while another destroys the last green context that kept it. */
static void a_primary_context_is_retained_beside_the_end_of_a_green_one(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "green g 0");
	expect(t, OK, "usegreen g");
	expect(t, OK, "alloc p 512m");
	delay(node, "cuDevicePrimaryCtxRetain");
	tell_aside(t, "primary 0");
	expect(t, OK, "endgreen g");
	expect(t, OK, "joined");
	slice_agreed(slice, 0);
	inject_clear_rules(node->machine);
	expect(t, OK, "reset 0");
	assert_int_equal(slice_books(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

/*
 * Two threads destroy one context, and a third context has its handle before the second of them is in the driver. What was destroyed
 * so was in the books, and the next context was measured as one of three that take what two do.
 */
static void a_context_is_not_destroyed_by_the_handle_of_another(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice), *other;

	node->is_loud = true;
	/* From the second second on NVML is asked. */
	expect(t, OK, "alloc p 2m");
	usleep(SECOND_US);
	expect(t, OK, "alloc q 2m");
	expect(t, OK, "free p");
	expect(t, OK, "free q");
	for (unsigned i = 0; i < 3; i++) {
		expect(t, OK, "newctx c 0");
		expect(t, OK, "primary 0");
		delay(node, "cuCtxDestroy_v2");
		tell_aside(t, "endctx c");
		tenant_ask(t, "endctx c");
		tenant_ask(t, "newctx d 0");
		expect_all_charged(slice);
		expect(t, OK, "joined");
		expect_all_charged(slice);
		inject_clear_rules(node->machine);
		expect(t, OK, "newctx e 0");
		expect_all_charged(slice);
		/* Another process has its own by the size that the slice remembers. */
		other = tenant_new(slice);
		expect(t, OK, "endctx e");
		tenant_ask(t, "endctx d");
		expect(t, OK, "primary 0");
		assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES);
		assert_int_equal(tenant_end(other), 0);
	}
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(slice_books(slice, 0), 0);
}

/* What a call reserved for frames goes back, though its context is gone when it ends. */
static void room_for_frames_comes_back_when_a_context_ends_under_way(void **state)
{
	static const char *const calls[][2] = {
		{"launch m", "cuLaunchKernel"}, {"instantiate e g", "cuGraphInstantiateWithFlags"}};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < 2; i++) {
		expect(t, OK, "newctx c 0");
		expect(t, OK, "module m frame=8192");
		if (i == 1) {
			expect(t, OK, "stream s");
			expect(t, OK, "capture s");
			expect(t, OK, "launch m s nowait");
			expect(t, OK, "endcapture s g");
		}
		delay(node, calls[i][1]);
		tell_aside(t, calls[i][0]);
		expect(t, OK, "endctx c");
		tenant_ask(t, "joined");
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
		inject_clear_rules(node->machine);
	}
	assert_int_equal(tenant_end(t), 0);
}

#define RESET_ROUNDS 10

/* Two calls of which nobody knows what they take, one in the other; then the process makes no call any more. */
static void what_was_reserved_beside_another_call_comes_back_when_both_have_ended(void **state)
{
	static const char *const calls[][2] = {
		{"module m heap printf", "cuModuleLoadData"},
		{"alloc a 2m", "cuMemAlloc_v2"},
	};
	struct node *node = *state;

	for (unsigned i = 0; i < 2; i++) {
		struct slice *slice = slice_new(node, i ? "b" : "a", "2g", NULL);
		struct tenant *t = tenant_new(slice);

		expect(t, OK, "primary 0");
		delay(node, calls[i][1]);
		tell_aside(t, calls[i][0]);
		expect(t, OK, "library l fat");
		expect(t, OK, "joined");
		assert_int_equal(slice_books(slice, 0), slice_truth(slice, 0));
		inject_clear_rules(node->machine);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void what_is_allocated_in_a_new_primary_context_does_not_end_with_the_old_one(void **state)
{
	struct slice *slice = slice_new(*state, "a", "20g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < RESET_ROUNDS; i++) {
		expect(t, OK, "resetrace 100000 32m");
		expect_all_charged(slice);
		expect(t, OK, "reset 0");
		expect(t, OK, "primary 0");
	}
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(
			what_was_reserved_beside_another_call_comes_back_when_both_have_ended),
		test_with_node(a_thread_that_is_cancelled_leaves_nothing_half_done),
		test_with_node(a_handle_that_is_released_is_not_exported_past_the_books),
		test_with_node(a_range_that_is_freed_is_not_registered_past_the_books),
		test_with_node(a_mapping_that_goes_is_not_registered_past_the_books),
		test_with_node(a_mapping_that_goes_is_not_retained_past_the_books),
		test_with_node(a_handle_that_is_released_is_not_mapped_past_the_books),
		test_with_node(what_goes_is_not_bound_past_the_books),
		test_with_node(what_is_bound_is_not_unbound_past_the_books),
		test_with_node(a_range_that_is_mapped_again_is_charged_for_what_is_mapped),
		test_with_node(memory_that_is_kept_stays_charged_beside_another_free),
		test_with_node(what_the_driver_refuses_leaves_nothing_pinned),
		test_with_node(a_mapping_that_the_driver_keeps_is_charged_beside_a_release),
		test_with_node(what_waits_for_a_stream_comes_back_with_its_context),
		test_with_node(room_for_frames_comes_back_when_a_context_ends_under_way),
		test_with_node(a_context_is_not_destroyed_by_the_handle_of_another),
		test_with_node(a_primary_context_is_retained_beside_the_end_of_a_green_one),
		test_with_node(
			what_is_allocated_in_a_new_primary_context_does_not_end_with_the_old_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
