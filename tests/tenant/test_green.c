/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts, and contexts that end with their last reference. */
#include "tests/tenant/tenant.h"

#include <stdio.h>

/* What green contexts and streams take is rounded up to the ledger's unit. */
static struct slice *slice_of(struct node *node, const char *quota)
{
	struct slice *slice = slice_new(node, "a", quota, NULL);

	slice->slack_bytes = 64 * KIB;
	return slice;
}

static void a_green_context_is_charged_and_so_is_what_is_allocated_in_it(void **state)
{
	struct slice *slice = slice_of(*state, "2g");
	struct tenant *t = tenant_new(slice);
	uint64_t green;

	expect(t, OK, "green g 0");
	green = slice_agreed(slice, 0);
	assert_true(green > CONTEXT_BYTES && green < CONTEXT_BYTES + 16 * MIB);
	expect(t, OK, "greenstream s g");
	expect(t, OK, "usegreen g");
	expect(t, OK, "alloc a 500m");
	expect(t, OUT_OF_MEMORY, "alloc b 1100m");
	assert_true(slice_agreed(slice, 0) >= green + 500 * MIB);
	expect(t, OK, "async c 100m s");
	expect(t, OK, "freeasync c s");
	expect(t, OK, "sync");
	expect(t, OK, "primary 0");
	expect(t, OK, "endgreen g");
	/* It outlives the green context, which gives nothing back. */
	assert_true(slice_agreed(slice, 0) >= green + 500 * MIB);
	expect(t, OK, "free a");
	assert_true(slice_agreed(slice, 0) >= green);
	expect(t, OK, "alloc a 500m");
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

/* There was no primary context before: it comes with the green one, and goes when that is reset. */
static void a_green_context_brings_the_primary_one(void **state)
{
	struct slice *slice = slice_of(*state, "2g");
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	expect(t, OK, "green g 0");
	assert_true(slice_agreed(slice, 0) > CONTEXT_BYTES);
	expect(t, OK, "usegreen g");
	expect(t, OK, "alloc a 100m");
	assert_true(slice_agreed(slice, 0) > CONTEXT_BYTES + 100 * MIB);
	expect(t, OK, "endgreen g");
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void green_contexts_that_do_not_fit_are_refused(void **state)
{
	struct slice *slice = slice_of(*state, "600m");
	struct tenant *t = tenant_new(slice);
	uint64_t held;
	int r = OK;

	for (unsigned i = 0; i < 64 && r == OK; i++)
		r = tenant_ask(t, "green g%u 0", i);
	assert_int_equal(r, OUT_OF_MEMORY);
	held = slice_agreed(slice, 0);
	assert_true(held <= 600 * MIB && held + 16 * MIB > 600 * MIB);
	assert_true(slice_peak(slice, 0) <= 600 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_context_ends_with_its_last_reference(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "newctx c 0");
	expect(t, OK, "alloc a 100m");
	expect(t, OK, "attach");
	expect(t, OK, "detach c");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 100 * MIB);
	expect(t, OK, "detach c");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 1g");
	assert_int_equal(tenant_end(t), 0);
}

#define ILLEGAL_ADDRESS 700

/* The driver answers what the kernel did, and the context is gone all the same. */
static void a_context_that_a_kernel_broke_gives_back_what_it_had(void **state)
{
	struct slice *slice = slice_of(*state, "2g");
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	expect(t, OK, "init");
	expect(t, OK, "newctx c 0");
	expect(t, OK, "alloc a 512m");
	expect(t, ILLEGAL_ADDRESS, "stray");
	expect(t, ILLEGAL_ADDRESS, "alloc b 64m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 512 * MIB);
	expect(t, ILLEGAL_ADDRESS, "endctx c");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 512m");
	expect(t, ILLEGAL_ADDRESS, "stray");
	expect(t, ILLEGAL_ADDRESS, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

/* What is made while a green context is current ends with its primary context, whatever became of it. */
static void arrays_of_a_green_context_end_with_its_primary_one(void **state)
{
	struct slice *slice = slice_of(*state, "2g");
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < 3; i++) {
		expect(t, OK, "green g 0");
		expect(t, OK, "usegreen g");
		expect(t, OK, "array a 256m");
		expect(t, OK, "array b 16x16");
		assert_true(slice_agreed(slice, 0) >= CONTEXT_BYTES + 256 * MIB);
		expect(t, OK, "endgreen g");
		expect(t, OK, "reset 0");
		assert_int_equal(slice_agreed(slice, 0), 0);
		expect(t, OK, "primary 0");
	}
	assert_int_equal(tenant_end(t), 0);
}

#define KERNEL_NS UINT64_C(3000000000)

static void tiles_on_their_way_out_in_a_green_stream_end_with_its_primary_context(void **state)
{
	struct slice *slice = slice_of(*state, "2g");
	struct tenant *t = tenant_new(slice);

	assert_int_equal(inject_set_kernel(slice->node->machine, "k", KERNEL_NS), 0);
	for (unsigned i = 0; i < 3; i++) {
		expect(t, OK, "green g 0");
		expect(t, OK, "greenstream s g");
		expect(t, OK, "usegreen g");
		expect(t, OK, "module m");
		expect(t, OK, "array a 4096x4096,sparse");
		expect(t, OK, "create h 64m");
		expect(t, OK, "tile a 0 h s");
		expect(t, OK, "release h");
		expect(t, OK, "launch m s nowait");
		expect(t, OK, "untile a 0 s");
		assert_true(slice_books(slice, 0) >= CONTEXT_BYTES + 64 * MIB);
		expect(t, OK, "reset 0");
		assert_int_equal(slice_books(slice, 0), 0);
		expect(t, OK, "primary 0");
	}
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_green_context_is_charged_and_so_is_what_is_allocated_in_it),
		test_with_node(a_green_context_brings_the_primary_one),
		test_with_node(green_contexts_that_do_not_fit_are_refused),
		test_with_node(a_context_ends_with_its_last_reference),
		test_with_node(a_context_that_a_kernel_broke_gives_back_what_it_had),
		test_with_node(arrays_of_a_green_context_end_with_its_primary_one),
		test_with_node(
			tiles_on_their_way_out_in_a_green_stream_end_with_its_primary_context),
	};

	return cmocka_run_group_tests_name("green", tests, NULL, NULL);
}
