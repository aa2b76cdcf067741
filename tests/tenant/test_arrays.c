/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: charged by what the driver takes, for as long as it keeps it. */
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

/* The books may be above the truth by so much, never below. */
static void expect_covered(struct slice *slice, uint64_t most_above)
{
	uint64_t truth = slice_truth(slice, 0), books = slice_books(slice, 0);

	if (books < truth || books > truth + most_above)
		print_message("truth %llu, books %llu\n", (unsigned long long)truth,
			(unsigned long long)books);
	assert_true(books >= truth && books <= truth + most_above);
}

static const struct {
	const char *shape;
	uint64_t bytes; /* that one alone takes */
} shapes[] = {
	{"1000,u8", 2 * MIB},
	{"131072", 4 * MIB},
	{"64x64", 2 * MIB},
	{"512x256", 2 * MIB},
	{"600x500", 2 * MIB},
	{"512x1024", 2 * MIB},
	{"700x700", 4 * MIB},
	{"1024x1024", 4 * MIB},
	{"1024x1024,surface", 4 * MIB},
	{"513x777,c2", 4 * MIB},
	{"200x200x200", 34 * MIB},
	{"256x256x10,layered", 4 * MIB},
	{"256x256x6,cube", 2 * MIB},
	{"256x256x12,cube,layered", 4 * MIB},
	{"1024x1024,m11", 6 * MIB},
	{"4096x4096,c4,m13", 342 * MIB},
	{"64x64,m7", 2 * MIB},
	{"64m,gather", 64 * MIB},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void each_shape_takes_and_gives_back_what_the_driver_does(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < SHAPES; i++) {
		expect(t, OK, "array a %s", shapes[i].shape);
		expect_held(slice, shapes[i].bytes);
		expect(t, OK, "endarray a");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void arrays_of_each_shape_fill_the_quota_and_no_more(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1100m", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < SHAPES; i++) {
		uint64_t held;

		expect(t, OUT_OF_MEMORY, "fillarray %s", shapes[i].shape);
		held = slice_agreed(slice, 0);
		if (held + shapes[i].bytes <= 1100 * MIB)
			print_message("%s: refused at %llu MiB\n", shapes[i].shape,
				(unsigned long long)(held / MIB));
		assert_true(held <= 1100 * MIB && held + shapes[i].bytes > 1100 * MIB);
		expect(t, OK, "droparrays");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void small_arrays_share_chunks_and_give_back_the_last(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fillarray 64x64 100");
	expect_held(slice, 2 * MIB);
	expect(t, OK, "fillarray 512x256 20");
	expect_covered(slice, 0);
	expect(t, OK, "fillarray 600x500 20");
	expect_covered(slice, 0);
	expect(t, OK, "alloc p 1000");
	expect_covered(slice, 0);
	expect(t, OK, "droparrays 2");
	expect_covered(slice, 0);
	expect(t, OK, "fillarray 64x64 1000");
	expect_covered(slice, 0);
	expect(t, OK, "droparrays 3");
	expect_covered(slice, 0);
	expect(t, OK, "droparrays");
	expect_held(slice, 2 * MIB);
	expect(t, OK, "free p");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void an_array_may_be_destroyed_in_any_thread_and_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", "1g");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "array a 1024x1024");
	expect(t, OK, "array b 64x64");
	expect(t, OK, "array c 1024x1024,m11");
	expect_held(slice, 12 * MIB);
	expect(t, OK, "endarray a thread");
	expect(t, OK, "endarray b thread");
	expect_held(slice, 6 * MIB);
	expect(t, OK, "primary 1");
	expect(t, OK, "endarray c");
	expect_held(slice, 0);
	assert_int_equal(slice_agreed(slice, 1), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void a_context_takes_its_arrays_with_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "array mine 64x64");
	for (int i = 0; i < 3; i++) {
		expect(t, OK, "newctx c 0");
		expect(t, OK, "fillarray 64x64 50");
		expect(t, OK, "fillarray 700x700 10");
		expect(t, OK, "fillarray 1024x1024,m11 3");
		expect_held(slice, CONTEXT_BYTES + (2 + 2 + 40 + 18) * MIB);
		expect(t, OK, "endctx c");
		expect(t, OK, "forgetarrays");
		expect(t, OK, "primary 0");
		expect(t, OK, "unprimary 0");
		expect_held(slice, 2 * MIB);
	}
	expect(t, OK, "reset 0");
	assert_int_equal(slice_agreed(slice, 0), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void the_drivers_own_refusal_reaches_the_program(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, INVALID_VALUE, "array a 0");
	expect(t, INVALID_VALUE, "array a 200000");
	expect(t, INVALID_VALUE, "array a 65536x65536x65536");
	expect(t, INVALID_VALUE, "array a 64x64,c3");
	expect(t, INVALID_VALUE, "array a 64x64x5,cube");
	expect(t, INVALID_VALUE, "array a 64x64,sparse,deferred");
	expect(t, INVALID_VALUE, "array a 200000,m3");
	expect(t, OUT_OF_MEMORY, "array a 16384x16384x1024");
	expect(t, OK, "array a 64x64,m7");
	expect(t, OK, "level l a 3");
	expect(t, 400, "endarray l");
	expect(t, OK, "endarray a");
	expect(t, 400, "endarray a");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void inject(struct node *node, const char *symbol, int result, uint64_t skip, uint64_t times)
{
	struct inject_rule rule = {.tag = "*", .result = result, .skip = skip, .times = times};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
}

/* The real call is the second of its kind: the probe array's was the first. */
static void a_driver_that_fails_anywhere_leaves_the_books_right(void **state)
{
	static const struct {
		const char *words, *symbol;
		uint64_t skip;
		int result;
	} rows[] = {
		{"array a 1024x1024,surface", "cuArray3DCreate_v2", 1, 2},
		{"array a 1024x1024,surface", "cuArray3DCreate_v2", 1, 719},
		{"array a 64x64", "cuArrayCreate_v2", 0, 719},
		{"array a 1024x1024", "cuArrayCreate_v2", 0, 2},
		{"array a 1024x1024,m3", "cuMipmappedArrayCreate", 1, 719},
		{"array a 64x64,m3", "cuMipmappedArrayCreate", 1, 1},
	};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		inject(node, rows[i].symbol, rows[i].result, rows[i].skip, 1);
		expect(t, rows[i].result, "%s", rows[i].words);
		inject_clear_rules(node->machine);
		expect_held(slice, 0);
		expect(t, OK, "%s", rows[i].words);
		expect_covered(slice, 0);
		inject(node, "cuArrayDestroy", 719, 0, 1);
		inject(node, "cuMipmappedArrayDestroy", 719, 0, 1);
		expect(t, 719, "endarray a");
		inject_clear_rules(node->machine);
		expect_covered(slice, 0);
		expect(t, OK, "endarray a");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void without_a_probe_the_charge_is_never_too_low(void **state)
{
	static const char *const symbols[] = {
		"cuArrayGetMemoryRequirements", "cuMipmappedArrayGetMemoryRequirements"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "3g", NULL);
	struct tenant *t = tenant_new(slice);

	for (unsigned i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		inject(node, symbols[i], 801, 0, 0);
	for (unsigned i = 0; i < SHAPES; i++) {
		expect(t, OK, "array a %s", shapes[i].shape);
		assert_int_equal(slice_truth(slice, 0), CONTEXT_BYTES + shapes[i].bytes);
		expect_covered(slice, 600 * MIB);
		expect(t, OK, "endarray a");
		expect_held(slice, 0);
	}
	/* A wrong descriptor may only ever get the driver's word or "out of memory". */
	expect(t, INVALID_VALUE, "array a 200000");
	assert_int_equal(tenant_end(t), 0);
}

static void without_the_devices_free_memory_the_last_small_array_gives_everything_back(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fillarray 600x500 20");
	expect_held(slice, 40 * MIB);
	inject(node, "cuMemGetInfo_v2", 719, 0, 0);
	expect(t, OK, "droparrays 2");
	expect_covered(slice, 20 * MIB);
	expect(t, OK, "fillarray 64x64 5");
	expect_covered(slice, 20 * MIB);
	expect(t, OK, "droparrays");
	inject_clear_rules(node->machine);
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void threads_that_make_arrays_together_are_charged_right(void **state)
{
	struct slice *slice = slice_new(*state, "a", "600m", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "arraythreads 8 200 1024x1024");
	expect_held(slice, 0);
	expect(t, OK, "arraythreads 8 200 64m");
	expect_held(slice, 0);
	expect(t, OK, "arraythreads 8 300 512x256");
	expect_held(slice, 0);
	expect(t, OK, "arraythreads 4 100 1024x1024,m11");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* A neighbour's memory moves the device's free memory while small arrays come and go. */
static void a_busy_neighbour_makes_the_books_too_high_at_worst(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	struct tenant *neighbour = tenant_new(slice_new(node, "b", "2g", NULL));

	tenant_tell(neighbour, "threads 4 20000 6m");
	for (int i = 0; i < 20; i++) {
		expect(t, OK, "fillarray 512x256 100");
		expect_covered(slice, 150 * MIB);
		expect(t, OK, "droparrays 3");
		expect_covered(slice, 150 * MIB);
		expect(t, OK, "droparrays");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_answer(neighbour), OK);
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(neighbour), 0);
}

static void sparse_and_deferred_arrays_take_nothing_themselves(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fillarray 16384x16384,sparse 50");
	expect(t, OK, "fillarray 16384x16384,deferred 50");
	expect(t, OK, "fillarray 16384x16384,sparse,m10 50");
	expect_held(slice, 0);
	expect(t, OK, "droparrays");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void mapped_memory_stays_until_it_is_unmapped(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "array a 4096x4096,sparse");
	for (int i = 0; i < 4; i++) {
		expect(t, OK, "create h%d 32m", i);
		expect(t, OK, "tile a %d h%d", i, i);
		expect(t, OK, "release h%d", i);
	}
	expect_held(slice, 128 * MIB);
	expect(t, OUT_OF_MEMORY, "alloc p 400m");
	expect(t, OK, "untile a 1");
	expect(t, OK, "sync");
	expect_held(slice, 96 * MIB);
	expect(t, INVALID_VALUE, "tile a 1 h1");
	expect_held(slice, 96 * MIB);
	/* mapped anew: the old memory goes */
	expect(t, OK, "create n 64m");
	expect(t, OK, "tile a 0 n");
	expect(t, OK, "sync");
	expect_held(slice, (32 + 32 + 64) * MIB);
	expect(t, OK, "release n");
	expect_held(slice, (32 + 32 + 64) * MIB);
	expect(t, OK, "endarray a");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* Created, mapped as one part of so many tiles, and its handle released. */
static void map_tiles(struct tenant *t, unsigned first, unsigned count, unsigned mib)
{
	expect(t, OK, "create h %um", mib);
	expect(t, OK, "tiles a %u %u h", first, count);
	expect(t, OK, "release h");
	expect(t, OK, "sync");
}

static void a_larger_part_lets_go_of_all_that_lies_within(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "array a 4096x128,sparse");
	for (unsigned i = 1; i < 16; i++) {
		map_tiles(t, 0, i, 200);
		expect_held(slice, 200 * MIB);
	}
	/* Nothing of it lies wholly within what is unmapped. */
	expect(t, OK, "untiles a 1 30");
	expect(t, OK, "sync");
	expect_held(slice, 200 * MIB);
	for (unsigned i = 20; i < 24; i++)
		map_tiles(t, i, 1, 20);
	map_tiles(t, 22, 4, 40);
	expect_held(slice, (200 + 20 + 20 + 40) * MIB);
	expect(t, OK, "untile a 22");
	expect(t, OK, "sync");
	expect_held(slice, (200 + 20 + 20 + 40) * MIB);
	expect(t, OK, "untiles a 16 12");
	expect(t, OK, "sync");
	expect_held(slice, 200 * MIB);
	expect(t, OK, "untiles a 0 32");
	expect(t, OK, "sync");
	expect_held(slice, 0);
	map_tiles(t, 0, 2, 20);
	map_tiles(t, 4, 4, 20);
	expect_held(slice, 40 * MIB);
	expect(t, OK, "endarray a");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* Of a list that the driver has refused in part nobody knows what is mapped, until all of it is mapped anew. */
static void what_a_refused_list_may_have_mapped_goes_with_a_larger_part(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "array a 4096x128,sparse");
	map_tiles(t, 0, 1, 20);
	expect(t, OK, "create h 100m");
	expect(t, INVALID_VALUE, "tilebroken a 0 h");
	expect(t, OK, "release h");
	expect(t, OK, "sync");
	expect_covered(slice, 100 * MIB);
	expect(t, OK, "untiles a 0 2");
	expect(t, OK, "sync");
	expect_held(slice, 0);
	expect(t, OK, "endarray a");
	assert_int_equal(tenant_end(t), 0);
}

static void unmapped_memory_is_found_before_a_refusal(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 5; i++) {
		expect(t, OK, "array a 4096x4096,sparse");
		expect(t, OK, "create h 400m");
		expect(t, OK, "tile a 0 h");
		expect(t, OK, "release h");
		inject(node, "cuMemMapArrayAsync_ptsz", 719, 0, 1);
		inject(node, "cuMemMapArrayAsync", 719, 0, 1);
		expect(t, 719, "untile a 0");
		inject_clear_rules(node->machine);
		expect_held(slice, 400 * MIB);
		expect(t, OK, "untile a 0");
		expect(t, OK, "alloc p 400m");
		expect_covered(slice, 0);
		expect(t, OK, "free p");
		expect(t, OK, "endarray a");
		expect_held(slice, 0);
	}
	assert_int_equal(tenant_end(t), 0);
}

static void a_context_that_ends_lets_mapped_memory_go(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "newctx c 0");
	expect(t, OK, "array a 4096x4096,sparse");
	expect(t, OK, "create h 32m");
	expect(t, OK, "create k 32m");
	expect(t, OK, "tile a 0 h");
	expect(t, OK, "tile a 1 k");
	expect(t, OK, "release h");
	expect(t, OK, "endctx c");
	expect_held(slice, 32 * MIB);
	expect(t, OK, "release k");
	expect_held(slice, 0);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(each_shape_takes_and_gives_back_what_the_driver_does),
		test_with_node(arrays_of_each_shape_fill_the_quota_and_no_more),
		test_with_node(small_arrays_share_chunks_and_give_back_the_last),
		test_with_node(an_array_may_be_destroyed_in_any_thread_and_context),
		test_with_node(a_context_takes_its_arrays_with_it),
		test_with_node(the_drivers_own_refusal_reaches_the_program),
		test_with_node(a_driver_that_fails_anywhere_leaves_the_books_right),
		test_with_node(without_a_probe_the_charge_is_never_too_low),
		test_with_node(
			without_the_devices_free_memory_the_last_small_array_gives_everything_back),
		test_with_node(threads_that_make_arrays_together_are_charged_right),
		test_with_node(a_busy_neighbour_makes_the_books_too_high_at_worst),
		test_with_node(sparse_and_deferred_arrays_take_nothing_themselves),
		test_with_node(mapped_memory_stays_until_it_is_unmapped),
		test_with_node(a_larger_part_lets_go_of_all_that_lies_within),
		test_with_node(what_a_refused_list_may_have_mapped_goes_with_a_larger_part),
		test_with_node(unmapped_memory_is_found_before_a_refusal),
		test_with_node(a_context_that_ends_lets_mapped_memory_go),
	};

	return cmocka_run_group_tests_name("arrays", tests, NULL, NULL);
}
