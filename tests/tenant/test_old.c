/* SPDX-License-Identifier: Apache-2.0 */
/* Functions in the forms that few programs use: those of CUDA 2, and the newest. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <string.h>

#define INVALID_CONTEXT 201

/* A client with a context of CUDA 2, in which memory by 32 bits can be had. */
static struct tenant *old_tenant(struct slice *slice)
{
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	expect(t, OK, "formctx old 0 1");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	return t;
}

static void old_blocks_are_charged_like_new_ones(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = old_tenant(slice);

	expect(t, OK, "oldalloc a 64m");
	expect(t, OK, "oldalloc b 1");
	expect(t, OK, "oldalloc c 1");
	expect(t, OK, "oldpitch d 513 5000");
	assert_int_equal(tenant_number(t, "pitch"), 1024);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + (64 + 2 + 6) * MIB);
	expect(t, OK, "oldfree a");
	expect(t, OK, "oldfree b");
	expect(t, OK, "oldfree d");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 2 * MIB);
	expect(t, OK, "oldfree c");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void old_blocks_stop_at_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = old_tenant(slice);

	expect(t, OK, "oldalloc a 500m");
	expect(t, OUT_OF_MEMORY, "oldalloc b 8m");
	expect(t, OUT_OF_MEMORY, "oldpitch b 4096 4096");
	expect(t, OK, "oldalloc b 6m");
	expect(t, OUT_OF_MEMORY, "oldalloc c 1");
	assert_int_equal(slice_agreed(slice, 0), GIB);
	expect(t, OK, "oldfree a");
	expect(t, OK, "oldpitch a 4096 4096");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 22 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

/* What the driver gives and takes back at once would be held above the quota meanwhile. */
static void a_refusal_by_the_driver_leaves_no_charge(void **state)
{
	static const char *const calls[][2] = {{"cuMemAlloc", "oldalloc x 64m"},
		{"cuMemAllocPitch", "oldpitch x 4096 4096"}, {"cuCtxCreate", "formctx x 0 1"},
		{"cuCtxCreate_v3", "formctx x 0 3"}, {"cuCtxCreate_v4", "formctx x 0 4"}};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = old_tenant(slice);

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct inject_rule broken = {.tag = "*", .result = 700};

		snprintf(broken.symbol, sizeof(broken.symbol), "%s", calls[i][0]);
		assert_true(inject_add_rule(node->machine, &broken) >= 0);
		expect(t, 700, "%s", calls[i][1]);
		inject_clear_rules(node->machine);
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_failed_old_free_keeps_the_charge(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = old_tenant(slice);
	struct inject_rule broken = {.symbol = "cuMemFree", .tag = "*", .times = 1, .result = 719};

	expect(t, OK, "oldalloc a 64m");
	assert_true(inject_add_rule(node->machine, &broken) >= 0);
	expect(t, 719, "oldfree a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	expect(t, OK, "oldfree a");
	expect(t, INVALID_VALUE, "oldfree a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void what_is_wrong_is_for_the_driver_to_say(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *with_it = old_tenant(slice), *without;

	node->is_without_library = true;
	without = tenant_start(node, slice_new(node, "b", "1g", NULL), "linked", NULL);
	node->is_without_library = false;
	expect(without, OK, "formctx old 0 1");
	expect(without, OK, "oldwrong");
	expect(with_it, OK, "oldwrong");
	assert_string_equal(with_it->answer, without->answer);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(with_it), 0);
	assert_int_equal(tenant_end(without), 0);
}

static void old_memory_needs_an_old_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, INVALID_CONTEXT, "oldalloc a 64m");
	expect(t, OK, "alloc a 64m");
	expect(t, INVALID_CONTEXT, "oldfree a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void either_generation_frees_what_the_other_took(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = old_tenant(slice);

	expect(t, OK, "oldalloc a 64m");
	expect(t, OK, "free a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	expect(t, OK, "alloc a 64m");
	expect(t, OK, "oldfree a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

/* A descriptor keeps the memory, whichever free the program calls. */
static void an_old_free_leaves_what_something_keeps_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = old_tenant(slice);

	expect(t, OK, "oldalloc a 64m");
	expect(t, OK, "range f a 64m");
	expect(t, OK, "oldfree a");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void each_form_of_a_context_is_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_start(slice->node, slice, "linked", NULL);

	for (unsigned form = 1; form <= 4; form++) {
		expect(t, OK, "formctx a 0 %u", form);
		expect(t, OK, "formctx b 0 %u", form);
		expect(t, OK, "alloc m 64m");
		assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 64 * MIB);
		expect(t, OK, "formctx c 0 %u", form);
		expect(t, OUT_OF_MEMORY, "formctx d 0 %u", form);
		expect(t, OK, "oldendctx c");
		expect(t, OK, "oldendctx b");
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
		expect(t, OK, "oldendctx a");
		assert_int_equal(slice_agreed(slice, 0), 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void old_ends_of_the_primary_context_are_seen(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc a 64m");
	expect(t, OK, "oldunprimary 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 64m");
	expect(t, OK, "oldreset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void every_wait_lets_a_pool_go(void **state)
{
	static const char *const waits[] = {"sync", "syncctx", "syncevent", "streamsync"};
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		expect(t, OK, "async a 300m");
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 320 * MIB);
		expect(t, OK, "freeasync a");
		expect(t, OK, "%s", waits[i]);
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	}
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(old_blocks_are_charged_like_new_ones),
		test_with_node(old_blocks_stop_at_the_quota),
		test_with_node(a_refusal_by_the_driver_leaves_no_charge),
		test_with_node(a_failed_old_free_keeps_the_charge),
		test_with_node(what_is_wrong_is_for_the_driver_to_say),
		test_with_node(old_memory_needs_an_old_context),
		test_with_node(either_generation_frees_what_the_other_took),
		test_with_node(an_old_free_leaves_what_something_keeps_charged),
		test_with_node(each_form_of_a_context_is_charged),
		test_with_node(old_ends_of_the_primary_context_are_seen),
		test_with_node(every_wait_lets_a_pool_go),
	};

	return cmocka_run_group_tests_name("old", tests, NULL, NULL);
}
