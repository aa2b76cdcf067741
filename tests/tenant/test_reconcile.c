/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library finds when it compares its books with the driver, while other threads take and free
 * memory. The library under test is a build with base/fault.h's places in it (fault_env.c).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tenant/course.h"
#include "tests/tenant/meter.h"
#include "base/bits.h"
#include "base/clock.h"
#include "region/layout.h"
#include "sim/machine/inject.h"

#define UNANNOUNCED_BYTES (16 * MIB) /* by fault_env.c */
#define QUESTIONS_MOST	  64

/* A process whose n-th question to NVML is answered while another thread has a block; what is found. */
static uint64_t find_beside_a_thread(struct course *c, unsigned n)
{
	struct tenant *t;
	char fault[64];
	uint64_t held;

	snprintf(fault, sizeof(fault), "VGPU_FAULT=borrow %u reconcile: asking", n);
	t = course_start(c, fault);
	expect(t, OK, "primary 0");
	expect(t, OK, "stream s");
	expect(t, OUT_OF_MEMORY, "alloc a 8g");
	held = slice_agreed(c->slice, 0);
	assert_int_equal(tenant_end(t), 0);
	course_end_case(c);
	return held;
}

static void what_a_thread_takes_and_frees_during_a_comparison_is_not_found(void **state)
{
	struct course c = course_begin(*state);
	uint64_t without = find_beside_a_thread(&c, QUESTIONS_MOST);
	unsigned n = 1;

	while (n < QUESTIONS_MOST && find_beside_a_thread(&c, n) == without + UNANNOUNCED_BYTES)
		n++;
	print_message("%u questions\n", n - 1);
	assert_true(n > 1 && n < QUESTIONS_MOST);
	assert_int_equal(find_beside_a_thread(&c, n), without);
}

static void a_context_is_not_measured_beside_another_call(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=borrow 1 context: asking");
	uint64_t learned_bytes;

	expect(t, OK, "primary 0");
	expect(t, OK, "newctx c 0");
	learned_bytes = meter_region(c.slice)->own.devices[0].context_bytes;
	print_message("%llu MiB\n", (unsigned long long)(learned_bytes / MIB));
	assert_in_range(learned_bytes, 500 * MIB, 540 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* As a driver of another version left it, or a measure that went wrong. */
static void a_wrong_size_of_a_context_is_corrected(void **state)
{
	static const uint64_t wrong_bytes[] = {68 * MIB, 2 * GIB};
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	struct region_device *device;

	expect(t, OK, "primary 0");
	assert_int_equal(tenant_end(t), 0);
	device = &meter_region(slice)->own.devices[0];
	for (int i = 0; i < 2; i++) {
		device->context_bytes = wrong_bytes[i];
		device->context_measured_ns = 0;
		t = tenant_new(slice);
		expect(t, OK, "primary 0");
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
		assert_int_equal(device->context_bytes, CONTEXT_BYTES);
		assert_int_equal(tenant_end(t), 0);
	}
}

static int slow_down(struct node *node, const struct inject_rule *rule)
{
	int index = inject_add_rule(node->machine, rule);

	assert_true(index >= 0);
	return index;
}

/* Until a call is in the driver, where the rule delays it. */
static void await_delay(struct node *node, int index)
{
	uint64_t deadline_ns = clock_now_ns() + UINT64_C(20000000000), hits = 0;
	struct inject_rule rule;

	do {
		usleep(1000);
		assert_int_equal(inject_read_rule(node->machine, (unsigned)index, &rule, &hits), 0);
	} while (!hits && clock_now_ns() < deadline_ns);
	assert_true(hits > 0);
}

/* While the first process frees what a descriptor keeps, the second frees as much, and is stopped before it says so. */
static void a_free_of_a_stopped_process_is_not_taken_for_ones_own(void **state)
{
	struct inject_rule slow = {
		.symbol = "cuMemFree_v2", .tag = "*", .times = 1, .delay_ns = 1000000000};
	struct course c = course_begin(*state);
	struct tenant *keeper = course_start(&c, "VGPU_FAULT=");
	struct tenant *stopped =
		course_start(&c, "VGPU_FAULT=stop 1 holding: given back in the driver");
	int index;

	expect(keeper, OK, "primary 0");
	expect(stopped, OK, "primary 0");
	expect(keeper, OK, "alloc a 64m");
	expect(keeper, OK, "range f a 64m");
	expect(stopped, OK, "alloc b 64m");
	index = slow_down(c.node, &slow);
	tenant_tell(keeper, "free a");
	await_delay(c.node, index);
	tenant_tell(stopped, "free b");
	assert_true(tenant_stops(stopped));
	assert_int_equal(tenant_answer(keeper), OK);
	tenant_kill(stopped, SIGKILL);
	expect(keeper, OK, "alloc b 32m");
	expect(keeper, OK, "free b");
	assert_true(slice_books(c.slice, 0) >= slice_truth(c.slice, 0));
	assert_int_equal(slice_truth(c.slice, 0), CONTEXT_BYTES + 64 * MIB);
	assert_int_equal(tenant_end(keeper), 0);
}

/* A process whose own pool is current, and 300 MiB from it, with the fault at its n-th passing of the place. */
static bool is_charged_after(struct course *c, const char *action, unsigned n, const char *place)
{
	struct tenant *t;
	char fault[96];
	uint64_t truth, books;

	snprintf(fault, sizeof(fault), "VGPU_FAULT=%s %u %s", action, n, place);
	t = course_start(c, fault);
	expect(t, OK, "primary 0");
	expect(t, OK, "newpool p");
	expect(t, OK, "threshold p 1g");
	expect(t, OK, "setpool p");
	expect(t, OK, "async a 300m");
	truth = slice_truth(c->slice, 0);
	books = slice_books(c->slice, 0);
	assert_true(truth > 300 * MIB);
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	assert_int_equal(tenant_end(t), 0);
	course_end_case(c);
	return books >= truth;
}

static void a_pool_that_is_destroyed_or_exchanged_beside_an_allocation_stays_charged(void **state)
{
	static const char *const places[] = {"charge: reserved", "pool: reading replaced"};
	struct course c = course_begin(*state);

	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		for (unsigned n = 1; n <= 4; n++) {
			assert_true(is_charged_after(&c, "endpool", n, places[i]));
			assert_true(is_charged_after(&c, "setpool", n, places[i]));
		}
}

/* What it gives back is booked from what was read before; the context's end gives back all. */
static void a_stack_that_shrinks_while_its_context_ends_is_given_back_once(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=endctx 2 local: asked");

	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 100m");
	expect(t, OK, "newctx c 0");
	expect(t, OK, "module m frame=2048");
	expect(t, OK, "launch m");
	tenant_ask(t, "limit stack 1k");
	expect(t, OK, "sleep 300");
	expect(t, OK, "primary 0");
	assert_int_equal(slice_agreed(c.slice, 0), CONTEXT_BYTES + 100 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* More than the quota, as node_teardown() would find. */
static void a_pool_that_is_used_before_it_is_known_is_charged(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=usepool 1 pool: made");

	expect(t, OK, "primary 0");
	expect(t, OK, "newpool p");
	assert_true(slice_books(c.slice, 0) >= slice_truth(c.slice, 0));
	expect(t, OK, "frompool a p 300m");
	assert_true(slice_books(c.slice, 0) >= slice_truth(c.slice, 0));
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	assert_int_equal(tenant_end(t), 0);
}

/* Its place in the list is that of a pool that was destroyed. */
static void a_pool_that_is_just_being_entered_is_not_destroyed(void **state)
{
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=look 1 pool: handed over");

	expect(t, OK, "primary 0");
	expect(t, OK, "newpool p");
	expect(t, OK, "frompool a p 10m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	expect(t, OK, "endpool p");
	expect(t, OK, "newpool q");
	expect(t, OK, "frompool b q 10m");
	expect(t, OK, "endpool q");
	assert_int_equal(tenant_end(t), 0);
}

/* NVML's figure has it, the books have it apart from what the process holds alone. */
static void a_context_is_not_measured_beside_exported_memory(void **state)
{
	static const char *const ways[][2] = {
		{"alloc a 256m", "ipcget a"}, {"createx a 256m", "export f a"}};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);

	for (int i = 0; i < 2; i++) {
		struct tenant *t = tenant_new(slice);
		struct region_device *device;

		expect(t, OK, "primary 0");
		device = &meter_region(slice)->own.devices[0];
		expect(t, OK, "%s", ways[i][0]);
		expect(t, OK, "%s", ways[i][1]);
		device->context_measured_ns = 0;
		expect(t, OK, "newctx c 0");
		assert_int_equal(device->context_bytes, CONTEXT_BYTES);
		assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 256 * MIB);
		assert_int_equal(tenant_end(t), 0);
	}
}

/*
 * What another process took unannounced is found while this one's call is in the driver: that is above the quota by 10 MiB
 * then, for which the call is not refused. Of the rest of the quota rest_mib are left for the call.
 */
static void expect_no_blame(void **state, unsigned rest_mib, const char *symbol, const char *call)
{
	struct inject_rule slow = {.tag = "*", .times = 1, .delay_ns = 1500000000};
	struct course c = course_begin(*state);
	struct tenant *t = course_start(&c, "VGPU_FAULT=");
	struct tenant *other = course_start(&c, "VGPU_FAULT=borrow 2 charge: reserved");
	int index;

	c.node->is_loud = true;
	c.slice->slack_bytes = UNANNOUNCED_BYTES;
	snprintf(slow.symbol, sizeof(slow.symbol), "%s", symbol);
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 2m");
	expect(other, OK, "primary 0");
	expect(other, OK, "alloc a 2m");
	expect(other, OK, "alloc b %um", 4096 - 2 * 518 - 4 - rest_mib);
	index = slow_down(c.node, &slow);
	tenant_tell(t, "%s", call);
	await_delay(c.node, index);
	expect(other, OUT_OF_MEMORY, "alloc c 8g");
	assert_true(slice_books(c.slice, 0) > 4 * GIB);
	assert_int_equal(tenant_answer(t), OK);
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(other), 0);
}

static void a_context_is_not_refused_for_what_another_process_took(void **state)
{
	expect_no_blame(state, 518 + 6, "cuCtxCreate_v2", "newctx c 0");
}

static void an_image_is_not_refused_for_what_another_process_took(void **state)
{
	expect_no_blame(state, 2 + 6, "cuModuleLoadData", "module m");
}

/* The driver shows it for who opened it, at once; the books say that both hold it until the dead are looked for. */
static void memory_of_a_maker_that_was_killed_is_charged_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *opener = tenant_new(slice);

	expect(maker, OK, "alloc a 256m");
	expect(maker, OK, "ipcget a");
	expect(opener, OK, "ipcopen b %s", strstr(maker->answer, "handle=") + strlen("handle="));
	expect(opener, OK, "stream s");
	tenant_kill(maker, SIGKILL);
	expect(opener, OUT_OF_MEMORY, "alloc c 8g");
	assert_int_equal(slice_agreed(slice, 0), slice_truth(slice, 0));
	assert_int_equal(tenant_end(opener), 0);
}

/* Before the dead are looked for. */
static void a_context_is_not_measured_beside_memory_of_a_dead_maker(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *maker = tenant_new(slice), *opener = tenant_new(slice);
	struct region_device *device = &meter_region(slice)->own.devices[0];

	expect(maker, OK, "alloc a 256m");
	expect(maker, OK, "ipcget a");
	expect(opener, OK, "ipcopen b %s", strstr(maker->answer, "handle=") + strlen("handle="));
	tenant_kill(maker, SIGKILL);
	device->context_measured_ns = 0;
	expect(opener, OK, "newctx c 0");
	assert_int_equal(device->context_bytes, CONTEXT_BYTES);
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 256 * MIB);
	assert_int_equal(tenant_end(opener), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_context_is_not_refused_for_what_another_process_took),
		test_with_node(an_image_is_not_refused_for_what_another_process_took),
		test_with_node(memory_of_a_maker_that_was_killed_is_charged_once),
		test_with_node(a_context_is_not_measured_beside_memory_of_a_dead_maker),
		test_with_node(
			a_pool_that_is_destroyed_or_exchanged_beside_an_allocation_stays_charged),
		test_with_node(a_stack_that_shrinks_while_its_context_ends_is_given_back_once),
		test_with_node(a_pool_that_is_used_before_it_is_known_is_charged),
		test_with_node(a_pool_that_is_just_being_entered_is_not_destroyed),
		test_with_node(a_context_is_not_measured_beside_another_call),
		test_with_node(a_wrong_size_of_a_context_is_corrected),
		test_with_node(a_context_is_not_measured_beside_exported_memory),
		test_with_node(a_free_of_a_stopped_process_is_not_taken_for_ones_own),
		test_with_node(what_a_thread_takes_and_frees_during_a_comparison_is_not_found),
	};

	return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}
