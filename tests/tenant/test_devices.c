/* SPDX-License-Identifier: Apache-2.0 */
/* Two cards with different quotas, in whatever order and number a program sees them. */
#include "tests/tenant/tenant.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Blocks of 64 MiB beside a context in 1 GiB and in 2 GiB. */
#define IN_1G 7
#define IN_2G 23

static uint64_t blocks_on(struct tenant *t, int ordinal)
{
	uint64_t blocks;

	expect(t, OK, "primary %d", ordinal);
	expect(t, OUT_OF_MEMORY, "fill 64m 50");
	blocks = tenant_number(t, "count");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), blocks == IN_1G ? GIB : 2 * GIB);
	expect(t, OK, "totalmem %d", ordinal);
	assert_int_equal(tenant_number(t, "total"), blocks == IN_1G ? GIB : 2 * GIB);
	expect(t, OK, "drop");
	return blocks;
}

static void each_card_has_its_own_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", "2g");
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	assert_int_equal(blocks_on(t, 0), IN_1G);
	assert_int_equal(blocks_on(t, 1), IN_2G);
	assert_int_equal(blocks_on(t, 0), IN_1G);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(slice_agreed(slice, 1), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

/* What ordinals 0 and 1 (0: there is none) must be when the program sees the cards like this. */
static void see(struct node *node, struct slice *slice, const char *visible, const char *first_ask,
	uint64_t first, uint64_t second)
{
	struct tenant *t = tenant_start(node, slice, "linked", visible, NULL);
	uint64_t count = second ? 2 : 1;

	if (first_ask)
		expect(t, OK, "%s", first_ask);
	expect(t, OK, "init");
	expect(t, OK, "count");
	assert_int_equal(tenant_number(t, "count"), count);
	if (second)
		assert_int_equal(blocks_on(t, 1), second);
	assert_int_equal(blocks_on(t, 0), first);
	/* NVML knows nothing of CUDA_VISIBLE_DEVICES */
	expect(t, OK, "nvml 0");
	assert_int_equal(tenant_number(t, "total"), GIB);
	expect(t, OK, "nvml 1");
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_quota_follows_its_card_through_cuda_visible_devices(void **state)
{
	static const char *const asks[] = {NULL, "nvml 1"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", "2g");
	char text[200];

	for (unsigned i = 0; i < 2; i++) {
		see(node, slice, "CUDA_VISIBLE_DEVICES=0", asks[i], IN_1G, 0);
		see(node, slice, "CUDA_VISIBLE_DEVICES=1", asks[i], IN_2G, 0);
		see(node, slice, "CUDA_VISIBLE_DEVICES=0,1", asks[i], IN_1G, IN_2G);
		see(node, slice, "CUDA_VISIBLE_DEVICES=1,0", asks[i], IN_2G, IN_1G);
		snprintf(text, sizeof(text), "CUDA_VISIBLE_DEVICES=%s", node->uuid[1]);
		see(node, slice, text, asks[i], IN_2G, 0);
		snprintf(text, sizeof(text), "CUDA_VISIBLE_DEVICES=%s,%s", node->uuid[1],
			node->uuid[0]);
		see(node, slice, text, asks[i], IN_2G, IN_1G);
	}
}

static void an_indexed_limit_counts_as_nvml_does(void **state)
{
	static const char *const orders[] = {
		"CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=1,0"};
	struct node *node = *state;
	struct slice *slice = slice_new_bare(node, "a", GIB, 2 * GIB);
	char region[320];

	snprintf(region, sizeof(region), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s", slice->region);
	for (unsigned i = 0; i < 2; i++) {
		struct tenant *t = tenant_start(node, slice, "linked", region, orders[i],
			"CUDA_DEVICE_MEMORY_LIMIT_0=1g", "CUDA_DEVICE_MEMORY_LIMIT_1=2g", NULL);

		expect(t, OK, "init");
		assert_int_equal(blocks_on(t, 0), i ? IN_2G : IN_1G);
		assert_int_equal(blocks_on(t, 1), i ? IN_1G : IN_2G);
		assert_int_equal(tenant_end(t), 0);
		t = tenant_start(node, slice, "linked", region, orders[i],
			"CUDA_DEVICE_MEMORY_LIMIT=2g", "CUDA_DEVICE_MEMORY_LIMIT_0=1g", NULL);
		expect(t, OK, "init");
		assert_int_equal(blocks_on(t, 0), i ? IN_2G : IN_1G);
		assert_int_equal(blocks_on(t, 1), i ? IN_1G : IN_2G);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void a_limit_on_one_card_leaves_the_other_free(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new_bare(node, "a", UINT64_MAX, GIB);
	struct tenant *t;
	char region[320];

	snprintf(region, sizeof(region), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s", slice->region);
	t = tenant_start(node, slice, "linked", region, "CUDA_DEVICE_MEMORY_LIMIT_1=1g", NULL);
	expect(t, OK, "primary 0");
	expect(t, OK, "fill 1g 100");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), machine_board(node->machine)->total_bytes);
	expect(t, OK, "totalmem 0");
	assert_int_equal(tenant_number(t, "total"), machine_board(node->machine)->total_bytes);
	expect(t, OK, "drop");
	assert_int_equal(blocks_on(t, 1), IN_1G);
	assert_int_equal(tenant_end(t), 0);
}

static void a_card_without_a_line_is_not_granted(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OUT_OF_MEMORY, "primary 1");
	expect(t, OK, "primary 0");
	expect(t, OUT_OF_MEMORY, "create h 64m 1");
	assert_int_equal(slice_truth(slice, 1), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_free_is_for_the_card_of_the_block_and_not_for_the_current_one(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", "2g");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc a 100m");
	expect(t, OK, "async b 100m");
	expect(t, OK, "sync");
	expect(t, OK, "primary 1");
	expect(t, OK, "alloc c 200m");
	expect(t, OK, "create h 64m 0");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 292 * MIB);
	assert_int_equal(slice_agreed(slice, 1), CONTEXT_BYTES + 200 * MIB);
	expect(t, OK, "free a");
	expect(t, OK, "release h");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 128 * MIB);
	assert_int_equal(slice_agreed(slice, 1), CONTEXT_BYTES + 200 * MIB);
	expect(t, OK, "primary 0");
	expect(t, OK, "free c");
	expect(t, OK, "freeasync b");
	expect(t, OK, "sync");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(slice_agreed(slice, 1), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void managed_memory_that_another_device_refuses_says_so(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", "1g");
	struct tenant *t = tenant_new(slice);
	char said[4096];

	node->is_loud = true;
	expect(t, OK, "managed a 500m");
	assert_int_equal(slice_books(slice, 1), 500 * MIB);
	expect(t, OUT_OF_MEMORY, "managed b 600m");
	assert_int_equal(slice_books(slice, 0), CONTEXT_BYTES + 500 * MIB);
	assert_int_equal(slice_books(slice, 1), 500 * MIB);
	node_read_errors(node, said, sizeof(said));
	assert_non_null(strstr(said, "CUDA_VISIBLE_DEVICES"));
	assert_non_null(strstr(said, node->uuid[1]));
	assert_int_equal(tenant_end(t), 0);
}

/* It may be above its quota there by that, and then nothing comes there. */
static void a_device_that_is_given_a_quota_is_charged_for_managed_memory(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", "0");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "managed a 1200m");
	expect(t, OK, "managed b 2m");
	assert_int_equal(slice_books(slice, 1), 0);
	slice_change(slice, "2g", "1g");
	usleep(100000); /* two QUOTA_CHECK_NS */
	expect(t, OK, "alloc c 2m");
	assert_int_equal(slice_books(slice, 1), 1202 * MIB);
	expect(t, OUT_OF_MEMORY, "newctx d 1");
	slice->node->is_loud = true;
	expect(t, OUT_OF_MEMORY, "managed e 2m");
	expect(t, OK, "free a");
	assert_int_equal(slice_books(slice, 1), 2 * MIB);
	expect(t, OK, "managed e 200m");
	assert_int_equal(slice_books(slice, 1), 202 * MIB);
	expect(t, OK, "newctx d 1");
	/* None ceases to be one. */
	slice_change(slice, "2g", "0");
	usleep(100000);
	expect(t, OK, "free b");
	expect(t, OK, "free e");
	expect(t, OK, "endctx d");
	assert_int_equal(slice_books(slice, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(a_device_that_is_given_a_quota_is_charged_for_managed_memory),
		test_with_node(managed_memory_that_another_device_refuses_says_so),
		test_with_node(each_card_has_its_own_quota),
		test_with_node(a_quota_follows_its_card_through_cuda_visible_devices),
		test_with_node(an_indexed_limit_counts_as_nvml_does),
		test_with_node(a_limit_on_one_card_leaves_the_other_free),
		test_with_node(a_card_without_a_line_is_not_granted),
		test_with_node(a_free_is_for_the_card_of_the_block_and_not_for_the_current_one),
	};

	return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
