/* SPDX-License-Identifier: Apache-2.0 */
/* How long each kind of memory is charged: exactly as long as the driver keeps it. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <string.h>

static void expect_held(struct slice *slice, uint64_t beside_context)
{
	uint64_t held = slice_agreed(slice, 0);

	if (held != CONTEXT_BYTES + beside_context)
		print_message("held %llu MiB beside the context\n",
			(unsigned long long)((held - CONTEXT_BYTES) / MIB));
	assert_int_equal(held, CONTEXT_BYTES + beside_context);
}

static void a_free_of_an_unknown_pointer_is_the_drivers_business(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, INVALID_VALUE, "freeraw 0x1234");
	expect(t, INVALID_VALUE, "freeraw 0xdeadbeef0000");
	expect(t, OK, "freeraw 0");
	expect(t, OK, "alloc a 64m");
	expect(t, OK, "free a");
	expect(t, INVALID_VALUE, "free a");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_failed_free_keeps_the_charge(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	struct inject_rule broken = {
		.symbol = "cuMemFree_v2", .tag = "*", .times = 1, .result = 719};

	expect(t, OK, "alloc a 64m");
	assert_true(inject_add_rule(node->machine, &broken) >= 0);
	expect(t, 719, "free a");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "free a");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_call_that_the_driver_refuses_leaves_no_charge(void **state)
{
	static const struct {
		const char *symbol, *words;
	} calls[] = {
		{"cuMemAlloc_v2", "alloc x 64m"},
		{"cuMemAllocPitch_v2", "pitch x 4096 4096"},
		{"cuMemAllocManaged", "managed x 64m"},
		{"cuMemCreate", "create x 64m"},
		{"cuMemAllocFromPoolAsync", "async x 64m"},
		{"cuCtxCreate_v2", "newctx x 0"},
	};
	static const int results[] = {2, 1, 700, 999};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
		for (unsigned r = 0; r < sizeof(results) / sizeof(results[0]); r++) {
			struct inject_rule broken = {.tag = "*", .result = results[r]};

			snprintf(broken.symbol, sizeof(broken.symbol), "%s", calls[c].symbol);
			assert_true(inject_add_rule(node->machine, &broken) >= 0);
			expect(t, results[r], "%s", calls[c].words);
			inject_clear_rules(node->machine);
			expect_held(slice, 0);
		}
	assert_int_equal(tenant_end(t), 0);
}

/* A destroyed pool's last block is freed when its stream comes to it, not when that is asked for. */
static void a_destroyed_pool_is_charged_until_its_last_free_is_done(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t free_bytes;

	slice->slack_bytes = TWO_STREAMS_BYTES;
	expect(t, OK, "stream s");
	expect(t, OK, "stream idle");
	expect(t, OK, "graph g");
	expect(t, OK, "gspin g 1 300000");
	expect(t, OK, "instantiate work g");
	expect(t, OK, "glaunch work s");
	expect(t, OK, "sync");
	free_bytes = slice_agreed(slice, 0);
	for (unsigned i = 0; i < 2; i++) {
		expect(t, OK, "newpool p");
		expect(t, OK, "frompool a p 300m s");
		expect(t, OK, "glaunch work s");
		expect(t, OK, i ? "endpool p" : "freeasync a s");
		expect(t, OK, i ? "freeasync a s" : "endpool p");
		expect(t, OK, "streamsync idle");
		expect(t, OUT_OF_MEMORY, "alloc b 400m");
		assert_int_equal(slice_agreed(slice, 0), free_bytes + 320 * MIB);
		expect(t, OK, "streamsync s");
		assert_int_equal(slice_agreed(slice, 0), free_bytes);
		expect(t, OK, "alloc b 400m");
		expect(t, OK, "free b");
	}
	assert_int_equal(tenant_end(t), 0);
}

/* While a destroyed pool holds something the driver has it still, but the program has not. */
static void a_destroyed_pool_cannot_be_used(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "newpool p");
	expect(t, OK, "setpool p");
	expect(t, OK, "frompool a p 100m");
	expect(t, OK, "endpool p");
	expect(t, INVALID_VALUE, "endpool p");
	expect(t, INVALID_VALUE, "setpool p");
	expect(t, OUT_OF_MEMORY, "frompool b p 1m");
	expect(t, OK, "async b 100m");
	expect_held(slice, 256 * MIB);
	expect(t, OK, "freeasync a");
	expect(t, OK, "freeasync b");
	expect(t, OK, "sync");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* More threads than have a word of their own to count their calls in: the last ones share. */
static void what_many_threads_take_one_after_the_other_is_given_back(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < 5; i++) {
		expect(t, OK, "threads 64 20 3m");
		expect_held(slice, 0);
	}
	/* The comparison finds nothing under way. */
	expect(t, OUT_OF_MEMORY, "alloc a 8g");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void an_asynchronous_block_may_be_freed_by_cumemfree(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 20; i++) {
		expect(t, OK, "async a 300m");
		expect_held(slice, 320 * MIB);
		expect(t, OK, "free a");
		expect(t, OK, "sync");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void an_asynchronous_block_may_be_freed_on_another_stream(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "stream s1");
	expect(t, OK, "stream s2");
	for (int i = 0; i < 20; i++) {
		expect(t, OK, "async a 300m s1");
		expect(t, OK, "streamsync s1");
		expect(t, OK, "freeasync a s2");
		expect(t, OK, "streamsync s2");
		expect(t, OK, "sync");
		expect_held(slice, TWO_STREAMS_BYTES);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_pool_is_charged_for_what_it_keeps(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "pool p");
	expect(t, OK, "threshold p 1g");
	expect(t, OK, "async a 400m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	expect_held(slice, 416 * MIB);
	expect(t, OK, "alloc b 64m");
	expect(t, OK, "async a 400m");
	expect_held(slice, 480 * MIB);
	expect(t, OUT_OF_MEMORY, "alloc c 128m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	expect(t, OK, "trim p 128m");
	expect(t, OK, "reserved p");
	assert_int_equal(
		slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB + tenant_number(t, "bytes"));
	expect(t, OK, "trim p 0");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "alloc c 400m");
	assert_int_equal(tenant_end(t), 0);
}

static void memory_that_a_pool_keeps_idle_goes_before_a_block_is_refused(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "pool p");
	expect(t, OK, "threshold p 1g");
	for (int i = 0; i < 5; i++) {
		expect(t, OK, "async a 400m");
		expect(t, OK, "freeasync a");
		expect(t, OK, "sync");
		expect_held(slice, 416 * MIB);
		expect(t, OK, "alloc b 500m");
		assert_true(slice_agreed(slice, 0) <= GIB);
		expect(t, OUT_OF_MEMORY, "async a 400m");
		expect(t, OK, "free b");
	}
	assert_int_equal(tenant_end(t), 0);
}

static void what_a_pool_gives_back_unseen_is_found_before_a_refusal(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 10; i++) {
		expect(t, OK, "async a 400m");
		expect(t, OK, "freeasync a");
		/* no synchronisation that names the pool; the driver may still give back */
		expect(t, OK, "streamsync");
		expect(t, OK, "alloc b 500m");
		expect(t, OK, "free b");
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_refused_asynchronous_block_is_an_ordinary_refusal(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "async a 600m");
	expect_held(slice, 0);
	expect(t, OUT_OF_MEMORY, "fillasync 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	assert_true(slice_truth(slice, 0) <= GIB);
	expect(t, OK, "drop");
	expect(t, OK, "sync");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_pool_of_its_own_is_charged_too(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "newpool p");
	expect(t, OK, "frompool a p 10m");
	expect_held(slice, 32 * MIB);
	expect(t, OK, "free a");
	expect(t, OK, "sync");
	expect_held(slice, 0);
	expect(t, OK, "threshold p 1g");
	expect(t, OK, "frompool a p 300m");
	expect_held(slice, 320 * MIB);
	expect(t, OUT_OF_MEMORY, "frompool b p 300m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	expect_held(slice, 320 * MIB);
	expect(t, OK, "endpool p");
	expect_held(slice, 0);
	expect(t, OK, "newpool p");
	expect(t, OUT_OF_MEMORY, "fillasync 64m p");
	assert_int_equal(tenant_number(t, "count"), 7);
	assert_int_equal(tenant_end(t), 0);
}

static void another_pool_may_become_the_devices_pool(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "pool first");
	expect(t, OK, "newpool p");
	expect(t, OK, "threshold p 1g");
	expect(t, OK, "setpool p");
	expect(t, OK, "async a 300m");
	expect_held(slice, 320 * MIB);
	expect(t, OK, "setpool first");
	expect(t, OUT_OF_MEMORY, "async b 300m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "sync");
	expect_held(slice, 320 * MIB);
	expect(t, OK, "trim p 0");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void created_memory_is_charged_until_its_last_reference_goes(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 256m");
	/* released after it was unmapped */
	expect(t, OK, "create h 64m");
	expect(t, OK, "map v 0 64m h");
	expect(t, OK, "access v 0 64m");
	expect(t, OK, "unmap v 0 64m");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "release h");
	expect_held(slice, 0);
	/* released while mapped */
	expect(t, OK, "create h 64m");
	expect(t, OK, "map v 0 64m h");
	expect(t, OK, "release h");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "unmap v 0 64m");
	expect_held(slice, 0);
	/* retained */
	expect(t, OK, "create h 64m");
	expect(t, OK, "map v 0 64m h");
	expect(t, OK, "retain h2 v");
	expect(t, OK, "release h");
	expect(t, OK, "unmap v 0 64m");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "release h2");
	expect_held(slice, 0);
	/* mapped twice */
	expect(t, OK, "create h 64m");
	expect(t, OK, "map v 0 64m h");
	expect(t, OK, "map v 64m 64m h");
	expect(t, OK, "release h");
	expect(t, OK, "unmap v 0 64m");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "unmap v 64m 64m");
	expect_held(slice, 0);
	/* one release too many is the driver's to refuse */
	expect(t, OK, "create h 64m");
	expect(t, OK, "release h");
	expect(t, INVALID_VALUE, "release h");
	expect_held(slice, 0);
	expect(t, OK, "unreserve v 256m");
	assert_int_equal(tenant_end(t), 0);
}

static void one_unmap_may_span_several_mappings(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 256m");
	for (int i = 0; i < 4; i++) {
		expect(t, OK, "create h%d 32m", i);
		expect(t, OK, "map v %dm 32m h%d", i * 32, i);
		expect(t, OK, "release h%d", i);
	}
	expect_held(slice, 128 * MIB);
	expect(t, OK, "unmap v 0 64m");
	expect_held(slice, 64 * MIB);
	expect(t, OK, "unmap v 64m 64m");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void one_unmap_may_span_a_hundred_mappings(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 256m");
	for (int i = 0; i < 100; i++) {
		expect(t, OK, "create h 2m");
		expect(t, OK, "map v %dm 2m h", 2 * i);
		expect(t, OK, "release h");
	}
	expect_held(slice, 200 * MIB);
	expect(t, OK, "unmap v 0 200m");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_range_beyond_all_memory_takes_no_time(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 16g");
	for (int i = 0; i < 100; i++) {
		expect(t, OK, "create h 2m");
		expect(t, OK, "map v %dm 2m h", 100 * i);
		expect(t, OK, "release h");
	}
	/* a step for each 2 MiB of it would be seconds */
	expect(t, INVALID_VALUE, "time unmap v 0 1048576g");
	assert_true(tenant_number(t, "us") < 1000000);
	expect_held(slice, 200 * MIB);
	expect(t, OK, "unmap v 100m 16280m");
	expect_held(slice, 2 * MIB);
	expect(t, OK, "unmap v 0 2m");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void mapping_without_a_handle_is_no_way_around_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OUT_OF_MEMORY, "fillvmm 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	expect_held(slice, 448 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void created_host_memory_is_not_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "create h 64m host");
	expect_held(slice, 0);
	expect(t, OK, "release h");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_thousand_mappings_come_and_go(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "reserve v 4g");
	for (int i = 0; i < 1000; i++) {
		expect(t, OK, "create h 2m");
		expect(t, OK, "map v %dm 2m h", 2 * i);
		expect(t, OK, "release h");
	}
	expect_held(slice, 2000 * MIB);
	for (int i = 999; i >= 0; i--)
		expect(t, OK, "unmap v %dm 2m", 2 * i);
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_context_that_goes_gives_back_what_was_allocated_in_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc mine 100m");
	for (int i = 0; i < 5; i++) {
		expect(t, OK, "newctx c 0");
		expect(t, OK, "alloc a 400m");
		expect(t, OK, "fill 100k 100");
		expect(t, OUT_OF_MEMORY, "newctx d 0");
		expect(t, OK, "endctx c");
		expect(t, OK, "primary 0");
		expect(t, OK, "unprimary 0");
		expect_held(slice, 100 * MIB);
	}
	expect(t, OK, "free mine");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void the_primary_context_is_one_however_often_it_is_retained(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "primary 0");
	expect(t, OK, "primary 0");
	expect_held(slice, 0);
	expect(t, OK, "alloc a 100m");
	expect(t, OK, "unprimary 0");
	expect(t, OK, "unprimary 0");
	expect_held(slice, 100 * MIB);
	expect(t, OK, "unprimary 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_reset_gives_everything_back(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 3; i++) {
		expect(t, OK, "alloc a 1g");
		expect(t, OK, "fill 4k 1000");
		expect(t, OK, "reset 0");
		assert_int_equal(slice_agreed(slice, 0), 0);
		expect(t, OK, "primary 0");
		expect_held(slice, 0);
	}
	expect(t, OK, "alloc a 1g");
	assert_int_equal(tenant_end(t), 0);
}

static void what_the_driver_takes_unannounced_is_found_before_a_refusal(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t seen;

	slice->slack_bytes = HUNDRED_STREAMS_BYTES;
	for (int i = 0; i < 100; i++)
		expect(t, OK, "stream s%d", i);
	expect(t, OUT_OF_MEMORY, "alloc a 600m");
	seen = slice_agreed(slice, 0);
	assert_true(seen >= CONTEXT_BYTES + HUNDRED_STREAMS_BYTES);
	expect(t, OUT_OF_MEMORY, "alloc a 480m");
	expect(t, OK, "alloc a 440m");
	expect(t, OK, "reset 0");
	slice->slack_bytes = 0;
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_free_of_an_unknown_pointer_is_the_drivers_business),
		test_with_node(a_failed_free_keeps_the_charge),
		test_with_node(a_call_that_the_driver_refuses_leaves_no_charge),
		test_with_node(a_destroyed_pool_is_charged_until_its_last_free_is_done),
		test_with_node(a_destroyed_pool_cannot_be_used),
		test_with_node(what_many_threads_take_one_after_the_other_is_given_back),
		test_with_node(an_asynchronous_block_may_be_freed_by_cumemfree),
		test_with_node(an_asynchronous_block_may_be_freed_on_another_stream),
		test_with_node(a_pool_is_charged_for_what_it_keeps),
		test_with_node(memory_that_a_pool_keeps_idle_goes_before_a_block_is_refused),
		test_with_node(what_a_pool_gives_back_unseen_is_found_before_a_refusal),
		test_with_node(a_refused_asynchronous_block_is_an_ordinary_refusal),
		test_with_node(a_pool_of_its_own_is_charged_too),
		test_with_node(another_pool_may_become_the_devices_pool),
		test_with_node(created_memory_is_charged_until_its_last_reference_goes),
		test_with_node(one_unmap_may_span_several_mappings),
		test_with_node(one_unmap_may_span_a_hundred_mappings),
		test_with_node(a_range_beyond_all_memory_takes_no_time),
		test_with_node(mapping_without_a_handle_is_no_way_around_the_quota),
		test_with_node(created_host_memory_is_not_charged),
		test_with_node(a_thousand_mappings_come_and_go),
		test_with_node(a_context_that_goes_gives_back_what_was_allocated_in_it),
		test_with_node(the_primary_context_is_one_however_often_it_is_retained),
		test_with_node(a_reset_gives_everything_back),
		test_with_node(what_the_driver_takes_unannounced_is_found_before_a_refusal),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
