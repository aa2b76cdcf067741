/* SPDX-License-Identifier: Apache-2.0 */
/* Every call is charged with what the driver really takes for it. */
#include "tests/tenant/tenant.h"

#include <stdio.h>

/* What a call takes, as measured on an H200 with driver 580.159.04. */
struct unit {
	const char *what; /* the client's words, to be separated at ';' */
	uint64_t mib;	  /* taken by them */
};

static void tell_all(struct tenant *t, const char *words)
{
	char line[256];

	while (*words) {
		int n = 0;

		assert_true(sscanf(words, " %255[^;]%n", line, &n) == 1);
		expect(t, OK, "%s", line);
		words += n;
		if (*words == ';')
			words++;
	}
}

static void check(
	struct slice *slice, const struct unit *units, size_t count, const char *give_back)
{
	struct tenant *t = tenant_new(slice);
	uint64_t before = slice_agreed(slice, 0);

	for (size_t i = 0; i < count; i++) {
		uint64_t took;

		tell_all(t, units[i].what);
		took = slice_agreed(slice, 0) - before;
		if (took != units[i].mib * MIB)
			print_message("%s: %llu KiB, not %llu\n", units[i].what,
				(unsigned long long)(took / KIB),
				(unsigned long long)(units[i].mib * KIB));
		assert_int_equal(took, units[i].mib * MIB);
		tell_all(t, give_back);
		assert_int_equal(slice_agreed(slice, 0), before);
	}
	assert_int_equal(tenant_end(t), 0);
}

#define CHECK(slice, units, give_back) \
	check(slice, units, sizeof(units) / sizeof((units)[0]), give_back)

static void a_context_takes_518_mib(void **state)
{
	struct slice *slice = slice_new(*state, "a", "8g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OK, "init");
	assert_int_equal(slice_truth(slice, 0), 0);
	expect(t, OK, "primary 0");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	expect(t, OK, "newctx c 0");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void large_blocks_take_multiples_of_2_mib(void **state)
{
	static const struct unit units[] = {
		{"alloc a 2m", 2},
		{"alloc a 2m+1", 4},
		{"alloc a 3m", 4},
		{"alloc a 4m", 4},
		{"alloc a 4m+1", 6},
		{"alloc a 31m", 32},
		{"alloc a 32m", 32},
		{"alloc a 32m+1", 34},
		{"alloc a 256m", 256},
	};

	CHECK(slice_new(*state, "a", "8g", NULL), units, "free a");
}

static void small_blocks_share_2_mib(void **state)
{
	static const struct unit units[] = {
		{"fill 1 1", 2},
		{"fill 1m 1", 2},
		{"fill 1 1000", 2},
		{"fill 4k 1000", 4},
		{"fill 512k 1000", 500},
		{"fill 1m 40", 40},
		{"fill 1536k 100", 200},
		{"fill 2m+1 100", 400},
	};

	CHECK(slice_new(*state, "a", "8g", NULL), units, "drop");
}

static void freeing_every_other_small_block_gives_nothing_back(void **state)
{
	struct slice *slice = slice_new(*state, "a", "8g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fill 512k 1000");
	expect(t, OK, "drop 2");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 500 * MIB);
	expect(t, OK, "drop");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void a_pitched_block_takes_what_its_real_pitch_needs(void **state)
{
	static const struct unit units[] = {
		{"pitch a 1 10", 2},
		{"pitch a 513 1000", 2},
		{"pitch a 100000 100", 10},
		{"pitch a 4096 4096", 16},
	};

	CHECK(slice_new(*state, "a", "8g", NULL), units, "free a");
}

static void managed_memory_is_charged_in_full_wherever_it_is(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "managed a 64m");
	assert_true(slice_books(slice, 0) >= CONTEXT_BYTES + 64 * MIB);
	assert_true(slice_books(slice, 0) <= CONTEXT_BYTES + 128 * MIB);
	expect(t, OUT_OF_MEMORY, "managed b 500m");
	expect(t, OK, "free a");
	assert_int_equal(slice_books(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void pools_grow_in_steps_of_32_mib_and_shrink_at_a_synchronisation(void **state)
{
	static const struct unit units[] = {
		{"async a 1", 32},
		{"async a 1m", 32},
		{"async a 33m", 64},
		{"async a 100m", 128},
	};

	CHECK(slice_new(*state, "a", "8g", NULL), units, "freeasync a; sync");
}

static void ten_blocks_of_5_mib_share_64_mib_of_a_pool(void **state)
{
	struct slice *slice = slice_new(*state, "a", "8g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 10; i++)
		expect(t, OK, "async n%d 5m", i);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	for (int i = 0; i < 10; i++)
		expect(t, OK, "freeasync n%d", i);
	expect(t, OK, "sync");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void created_memory_takes_its_size_at_creation(void **state)
{
	static const struct unit units[] = {
		{"create h 2m", 2},
		{"create h 64m", 64},
		{"create h 66m", 66},
	};

	CHECK(slice_new(*state, "a", "8g", NULL), units, "release h");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_context_takes_518_mib),
		test_with_node(large_blocks_take_multiples_of_2_mib),
		test_with_node(small_blocks_share_2_mib),
		test_with_node(freeing_every_other_small_block_gives_nothing_back),
		test_with_node(a_pitched_block_takes_what_its_real_pitch_needs),
		test_with_node(managed_memory_is_charged_in_full_wherever_it_is),
		test_with_node(pools_grow_in_steps_of_32_mib_and_shrink_at_a_synchronisation),
		test_with_node(ten_blocks_of_5_mib_share_64_mib_of_a_pool),
		test_with_node(created_memory_takes_its_size_at_creation),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
