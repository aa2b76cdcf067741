/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share: charged once in a slice, for as long as anybody keeps it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tenant/sharing.h"

#define NOT_PERMITTED 800

/* Two processes, of one slice or of two; the first one's block of 64 MiB is open in the second. */
static void open_block(struct tenant *maker, struct tenant *user)
{
	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen a %s", bytes_of(maker, "handle"));
}

/* A slice whose processes open handles of others. */
static struct slice *open_slice(struct node *node, const char *name, const char *quota)
{
	struct slice *slice = slice_new(node, name, quota, NULL);

	slice->terms = "imports any";
	slice_change(slice, quota, NULL);
	return slice;
}

static void an_opened_block_is_charged_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	open_block(maker, user);
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "ipcclose a");
	expect_beside(slice, 2, 64 * MIB);
	expect(user, INVALID_VALUE, "ipcclose a");
	expect(maker, OK, "free a");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void an_opened_block_stays_charged_when_its_maker_frees_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	open_block(maker, user);
	expect(maker, OK, "free a");
	expect_beside(slice, 2, 64 * MIB);
	expect(maker, OUT_OF_MEMORY, "alloc b 1g");
	expect(user, OK, "ipcclose a");
	expect_beside(slice, 2, 0);
	for (int i = 0; i < 20; i++) {
		open_block(maker, user);
		expect(maker, OK, "free a");
		expect(user, OK, "ipcclose a");
	}
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void opening_twice_wants_closing_twice(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	open_block(maker, user);
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen b %s", bytes_of(maker, "handle"));
	expect(maker, OK, "free a");
	expect(user, OK, "ipcclose a");
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "ipcclose b");
	expect_beside(slice, 2, 0);
	expect(user, INVALID_VALUE, "ipcclose b");
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/* More often than a count of 16 bits could say. */
static void opening_often_wants_closing_as_often(void **state)
{
	struct slice *a = slice_new(*state, "a", "1g", NULL), *b = open_slice(*state, "b", "1g");
	struct tenant *maker = tenant_new(a), *user = tenant_new(b);

	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopens a %s 65537", bytes_of(maker, "handle"));
	expect(user, OK, "ipcclose a");
	expect_books(b, 1, 64 * MIB);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void a_small_block_is_charged_to_somebody_at_every_instant(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	expect(maker, OK, "alloc s 1k");
	expect_beside(slice, 2, 2 * MIB);
	expect(maker, OK, "ipcget s");
	expect(user, OK, "ipcopen s %s", bytes_of(maker, "handle"));
	assert_true(slice_books(slice, 0) >= slice_truth(slice, 0));
	expect(maker, OK, "free s");
	expect_beside(slice, 2, 2 * MIB);
	expect(user, OK, "ipcclose s");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void the_death_of_the_maker_or_of_the_user_is_settled(void **state)
{
	void (*const ways[])(struct tenant *, struct tenant *) = {open_block, import_block};
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *other = tenant_new(slice);

	for (unsigned i = 0; i < 2; i++) {
		struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

		ways[i](maker, user);
		tenant_kill(maker, SIGKILL);
		expect_beside(slice, 2, 64 * MIB);
		/* What is refused has looked for the dead before. */
		expect(other, OUT_OF_MEMORY, "alloc x 2g");
		expect_beside(slice, 2, 64 * MIB);
		tenant_kill(user, SIGKILL);
		expect(other, OUT_OF_MEMORY, "alloc x 2g");
		expect_beside(slice, 1, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

		ways[i](maker, user);
		tenant_kill(user, SIGKILL);
		expect(other, OUT_OF_MEMORY, "alloc x 2g");
		expect_beside(slice, 2, 64 * MIB);
		assert_int_equal(tenant_end(maker), 0);
		expect(other, OUT_OF_MEMORY, "alloc x 2g");
		expect_beside(slice, 1, 0);
	}
	assert_int_equal(tenant_end(other), 0);
}

static void another_slice_pays_for_what_it_opens(void **state)
{
	struct slice *a = slice_new(*state, "a", "1g", NULL), *b = open_slice(*state, "b", "1g");
	struct tenant *maker = tenant_new(a), *user = tenant_new(b);

	open_block(maker, user);
	expect_beside(a, 1, 64 * MIB);
	expect_books(b, 1, 64 * MIB);
	expect(maker, OK, "free a");
	expect_beside(a, 1, 0);
	expect_beside(b, 1, 64 * MIB);
	expect(user, OK, "ipcclose a");
	expect_beside(b, 1, 0);
	/* By descriptor it pays from the import on, mapped or not. */
	import_block(maker, user);
	expect_beside(a, 1, 64 * MIB);
	expect_books(b, 1, 64 * MIB);
	expect(maker, OK, "release h");
	expect_beside(a, 1, 0);
	expect_beside(b, 1, 64 * MIB);
	expect(user, OK, "release h");
	expect_beside(b, 1, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void another_slice_cannot_open_more_than_its_quota(void **state)
{
	struct slice *a = slice_new(*state, "a", "2g", NULL), *b = open_slice(*state, "b", "1g");
	struct tenant *maker = tenant_new(a), *user = tenant_new(b);

	expect(maker, OK, "alloc a 700m");
	expect(maker, OK, "ipcget a");
	expect(user, OUT_OF_MEMORY, "ipcopen a %s", bytes_of(maker, "handle"));
	expect(maker, OK, "createx h 700m");
	expect(maker, OK, "export f h");
	hand_over(maker, user, "f");
	expect(user, OUT_OF_MEMORY, "import h f");
	expect_beside(b, 1, 0);
	expect(maker, OK, "free a");
	expect(maker, OK, "release h");
	expect(maker, 0, "closefd f");
	expect(user, 0, "closefd f");
	expect(maker, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(a, 1, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void expect_said(struct node *node, const char *what)
{
	char text[4096];

	node->is_loud = true;
	node_read_errors(node, text, sizeof(text));
	assert_non_null(strstr(text, what));
}

static void a_handle_that_the_slice_did_not_give_out_is_not_opened(void **state)
{
	struct node *node = *state;
	struct slice *a = slice_new(node, "a", "1g", NULL), *b = slice_new(node, "b", "1g", NULL);
	struct tenant *maker = tenant_new(a), *user = tenant_new(b);
	char handle[2 * 64 + 1];

	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	snprintf(handle, sizeof(handle), "%s", bytes_of(maker, "handle"));
	expect(user, NOT_PERMITTED, "ipcopen a %s", handle);
	expect_said(node, "imports any");
	expect_beside(b, 1, 0);
	/* The line holds from then on, as a refusal reads it anew. */
	b->terms = "imports any";
	slice_change(b, "1g", NULL);
	expect(user, OK, "ipcopen a %s", handle);
	expect_books(b, 1, 64 * MIB);
	b->terms = NULL;
	slice_change(b, "1g", NULL);
	expect(user, OUT_OF_MEMORY, "alloc x 2g");
	expect(user, NOT_PERMITTED, "ipcopen b %s", handle);
	expect(user, OK, "ipcclose a");
	expect_beside(b, 1, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/* The driver looks at no more than the first 40 bytes, and believes the size in them. */
static void a_handle_with_other_bytes_is_another_ones(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);
	char handle[2 * 64 + 1];

	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	snprintf(handle, sizeof(handle), "%s", bytes_of(maker, "handle"));
	for (unsigned i = 0; i < 2 * 64; i += 2) {
		char right = handle[i];

		handle[i] = right == '7' ? '6' : '7';
		expect(user, NOT_PERMITTED, "ipcopen a %s", handle);
		handle[i] = right;
	}
	expect(user, OK, "ipcopen a %s", handle);
	expect_said(*state, "imports any");
	expect_beside(slice, 2, 64 * MIB);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/* Nor one of memory that is freed, though other memory lies there now. */
static void a_handle_of_freed_memory_is_not_opened(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);
	char handle[2 * 64 + 1];

	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	snprintf(handle, sizeof(handle), "%s", bytes_of(maker, "handle"));
	expect(maker, OK, "free a");
	expect(maker, OK, "alloc a 256m");
	expect(user, NOT_PERMITTED, "ipcopen a %s", handle);
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen a %s", bytes_of(maker, "handle"));
	expect(user, NOT_PERMITTED, "ipcopen b %s", handle);
	expect_said(*state, "imports any");
	expect_beside(slice, 2, 256 * MIB);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void where_no_memory_is_limited_every_handle_is_opened(void **state)
{
	struct slice *a = slice_new(*state, "a", "1g", NULL),
		     *b = slice_new(*state, "b", "unlimited", NULL);
	struct tenant *maker = tenant_new(a), *user = tenant_new(b);

	open_block(maker, user);
	expect_books(b, 1, 64 * MIB);
	expect(user, OK, "ipcclose a");
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
	/* One quota is enough, be it of another device. */
	b = slice_new(*state, "c", "unlimited", "1g");
	maker = tenant_new(a);
	user = tenant_new(b);
	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	expect(user, NOT_PERMITTED, "ipcopen a %s", bytes_of(maker, "handle"));
	assert_int_equal(tenant_end(maker), 0);
	/* A process of the slice whose device has none gives out handles like any other. */
	maker = tenant_new(b);
	open_block(maker, user);
	expect_said(*state, "imports any");
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void a_quota_of_the_environment_lets_in_no_others(void **state)
{
	struct slice *a = slice_new(*state, "a", "1g", NULL),
		     *b = slice_new_bare(*state, "b", GIB, GIB);
	struct tenant *maker = tenant_new(a), *user;
	char region[320];

	snprintf(region, sizeof(region), "CUDA_DEVICE_MEMORY_SHARED_CACHE=%s", b->region);
	user = tenant_start(*state, b, "linked", region, "CUDA_DEVICE_MEMORY_LIMIT=1g", NULL);
	expect(user, OK, "primary 0");
	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	expect(user, NOT_PERMITTED, "ipcopen a %s", bytes_of(maker, "handle"));
	expect_said(*state, "imports any");
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/* Where the region has no place for what a handle names. */
static void what_finds_no_place_gets_no_handle(void **state)
{
	struct slice *slice = slice_new(*state, "a", "8g", NULL);
	struct tenant *filler = tenant_new(slice), *maker = tenant_new(slice),
		      *user = tenant_new(slice);

	expect(maker, OK, "alloc a 64m");
	expect(filler, OUT_OF_MEMORY, "exportmany 2m 1100");
	expect(maker, OUT_OF_MEMORY, "ipcget a");
	slice->terms = "imports any";
	slice_change(slice, "8g", NULL);
	expect(maker, OUT_OF_MEMORY, "alloc x 16g");
	expect(user, OUT_OF_MEMORY, "alloc x 16g");
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen a %s", bytes_of(maker, "handle"));
	expect(user, OK, "ipcclose a");
	expect(filler, OK, "endmany");
	slice->terms = NULL;
	slice_change(slice, "8g", NULL);
	expect(user, OUT_OF_MEMORY, "alloc x 16g");
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen a %s", bytes_of(maker, "handle"));
	assert_int_equal(tenant_end(filler), 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void the_end_of_a_context_lets_go_of_what_is_shared_in_it(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	expect(maker, OK, "newctx c 0");
	expect(user, OK, "newctx c 0");
	open_block(maker, user);
	expect_beside(slice, 4, 64 * MIB);
	expect(maker, OK, "endctx c");
	expect_beside(slice, 3, 64 * MIB);
	expect(user, OK, "endctx c");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/*
 * The locks by which all tell who lives fall with the last use of a process's memory. Who is just reading its environment in
 * /proc keeps that for a moment after its parent has collected it.
 */
static void await_ends(const struct slice *slice, uint64_t truth_bytes)
{
	for (unsigned ms = 0; slice_truth(slice, 0) != truth_bytes && ms < 5000; ms++)
		usleep(1000);
	assert_int_equal(slice_truth(slice, 0), truth_bytes);
}

/* Two that share and let go without an end are killed anywhere in it. */
static void a_death_at_any_instant_of_sharing_is_settled(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *other = tenant_new(slice);

	for (unsigned round = 0; round < 12; round++) {
		struct tenant *first = tenant_new(slice), *second = tenant_new(slice);

		tenant_tell(first, "sharing 64m 1000000");
		tenant_tell(second, "sharing 32m 1000000");
		usleep(2000 + 1700 * round);
		tenant_kill(first, SIGKILL);
		usleep(500);
		tenant_kill(second, SIGKILL);
		await_ends(slice, CONTEXT_BYTES);
		expect(other, OUT_OF_MEMORY, "alloc x 4g");
		expect_beside(slice, 1, 0);
	}
	assert_int_equal(tenant_end(other), 0);
}

static void sharing_and_letting_go_leaves_nothing(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *first = tenant_new(slice), *second = tenant_new(slice);

	tenant_tell(first, "sharing 64m 300");
	tenant_tell(second, "sharing 64m 300");
	assert_int_equal(tenant_answer(first), OK);
	assert_int_equal(tenant_answer(second), OK);
	expect(first, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(first), 0);
	assert_int_equal(tenant_end(second), 0);
}

/* NVML shows memory for its maker, then for its opener, or for nobody: it is never "other". */
static void what_is_shared_is_not_charged_again_as_other(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	open_block(maker, user);
	import_block(maker, user);
	for (int i = 0; i < 4; i++) {
		/* The comparison with NVML comes with an allocation, once a second. */
		expect(maker, OK, "sleep 1050");
		for (unsigned twice = 0; twice < 2; twice++) {
			expect(maker, OUT_OF_MEMORY, "alloc x 2g");
			expect(user, OUT_OF_MEMORY, "alloc x 2g");
		}
		expect_beside(slice, 2, i < 3 ? 128 * MIB : 0);
		if (i == 0)
			expect(maker, OK, "release h");
		if (i == 1)
			expect(maker, OK, "free a");
		if (i == 2) {
			expect(user, OK, "ipcclose a");
			expect(user, OK, "release h");
		}
	}
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void what_the_driver_refuses_leaves_no_charge(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "alloc a 64m");
	expect(t, OK, "ipcget a");
	expect(t, 201, "ipcopen b %s", bytes_of(t, "handle"));
	expect(t, OK, "create h 2m");
	expect(t, INVALID_VALUE, "export f h");
	expect(t, OK, "release h");
	expect(t, OK, "free a");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(an_opened_block_is_charged_once),
		test_with_node(an_opened_block_stays_charged_when_its_maker_frees_it),
		test_with_node(opening_twice_wants_closing_twice),
		test_with_node(opening_often_wants_closing_as_often),
		test_with_node(a_small_block_is_charged_to_somebody_at_every_instant),
		test_with_node(the_death_of_the_maker_or_of_the_user_is_settled),
		test_with_node(another_slice_pays_for_what_it_opens),
		test_with_node(another_slice_cannot_open_more_than_its_quota),
		test_with_node(a_handle_that_the_slice_did_not_give_out_is_not_opened),
		test_with_node(a_handle_with_other_bytes_is_another_ones),
		test_with_node(a_handle_of_freed_memory_is_not_opened),
		test_with_node(where_no_memory_is_limited_every_handle_is_opened),
		test_with_node(a_quota_of_the_environment_lets_in_no_others),
		test_with_node(what_finds_no_place_gets_no_handle),
		test_with_node(the_end_of_a_context_lets_go_of_what_is_shared_in_it),
		test_with_node(a_death_at_any_instant_of_sharing_is_settled),
		test_with_node(sharing_and_letting_go_leaves_nothing),
		test_with_node(what_is_shared_is_not_charged_again_as_other),
		test_with_node(what_the_driver_refuses_leaves_no_charge),
	};

	return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
