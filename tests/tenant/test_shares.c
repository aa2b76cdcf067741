/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share: charged once in a slice, for as long as anybody keeps it. */
#include "tests/tenant/tenant.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NOT_SUPPORTED 801

/* What the slice holds beside so many contexts, by the driver and by the books, which agree. */
static void expect_beside(struct slice *slice, unsigned contexts, uint64_t bytes)
{
	assert_int_equal(slice_agreed(slice, 0), contexts * CONTEXT_BYTES + bytes);
}

/* The same by the books alone, where another slice bears the memory. */
static void expect_books(struct slice *slice, unsigned contexts, uint64_t bytes)
{
	assert_int_equal(slice_books(slice, 0), contexts * CONTEXT_BYTES + bytes);
}

/* The bytes behind "key=" in the last answer; valid until the next call. */
static const char *bytes_of(const struct tenant *t, const char *key)
{
	static char text[129];
	const char *at = strstr(t->answer, key);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.128s", at + strlen(key) + 1);
	return text;
}

/* Hands a descriptor of one tenant to another. */
static void hand_over(struct tenant *from, struct tenant *to, const char *fd)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/hand-over", from->node->dir);
	tenant_tell(to, "recvfd %s %s", fd, path);
	expect(from, OK, "sendfd %s %s", path, fd);
	assert_int_equal(tenant_answer(to), OK);
}

/* Two processes, of one slice or of two; the first one's block of 64 MiB is open in the second. */
static void open_block(struct tenant *maker, struct tenant *user)
{
	expect(maker, OK, "alloc a 64m");
	expect(maker, OK, "ipcget a");
	expect(user, OK, "ipcopen a %s", bytes_of(maker, "handle"));
}

static void import_block(struct tenant *maker, struct tenant *user)
{
	expect(maker, OK, "createx h 64m");
	expect(maker, OK, "export f h");
	hand_over(maker, user, "f");
	expect(maker, 0, "closefd f");
	expect(user, OK, "import h f");
	expect(user, 0, "closefd f");
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
	struct slice *a = slice_new(*state, "a", "1g", NULL),
		     *b = slice_new(*state, "b", "1g", NULL);
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

static void an_imported_handle_is_charged_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	import_block(maker, user);
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "reserve v 64m");
	expect(user, OK, "map v 0 64m h");
	expect_beside(slice, 2, 64 * MIB);
	expect(maker, OK, "release h");
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "release h");
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "unmap v 0 64m");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void a_fabric_handle_is_charged_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	expect(maker, OK, "createx h 64m");
	expect(maker, OK, "exportfabric h");
	expect(user, OK, "importfabric h %s", bytes_of(maker, "handle"));
	/* And by descriptor as well, in the same process and in the other. */
	expect(maker, OK, "export f h");
	hand_over(maker, user, "f");
	expect(user, OK, "import i f");
	expect_beside(slice, 2, 64 * MIB);
	expect(maker, OK, "release h");
	expect(user, OK, "release h");
	expect(user, OK, "release i");
	expect(user, 0, "closefd f");
	expect_beside(slice, 2, 64 * MIB);
	expect(maker, 0, "closefd f");
	expect(maker, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void a_process_that_imports_its_own_memory_pays_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "createx h 64m");
	expect(t, OK, "export f h");
	expect(t, OK, "import i f");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "release h");
	expect(t, 0, "closefd f");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "release i");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void memory_in_descriptors_counts_until_they_are_closed(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t before;

	expect(t, OUT_OF_MEMORY, "churn 64m 100");
	before = tenant_number(t, "count");
	assert_true(before >= 6 && before < 9);
	expect_beside(slice, 1, before * 64 * MIB);
	/* The last one goes, and nothing else. */
	expect(t, 0, "closefd fd");
	expect(t, OK, "alloc a 64m");
	expect(t, OUT_OF_MEMORY, "alloc b 64m");
	expect_beside(slice, 1, before * 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void a_descriptor_outlives_its_maker_in_a_process_without_cuda(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *maker = tenant_new(slice), *other;
	struct tenant *keeper = tenant_start(*state, slice, "linked", NULL);

	expect(maker, OK, "createx h 256m");
	expect(maker, OK, "export f h");
	hand_over(maker, keeper, "f");
	tenant_kill(maker, SIGKILL);
	other = tenant_new(slice);
	expect(other, OUT_OF_MEMORY, "alloc x 400m");
	expect_beside(slice, 1, 256 * MIB);
	expect(keeper, 0, "closefd f");
	expect(other, OK, "alloc x 400m");
	expect_beside(slice, 1, 400 * MIB);
	assert_int_equal(tenant_end(other), 0);
	assert_int_equal(tenant_end(keeper), 0);
}

static void another_slice_pays_for_what_it_opens(void **state)
{
	struct slice *a = slice_new(*state, "a", "1g", NULL),
		     *b = slice_new(*state, "b", "1g", NULL);
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

#define EXPORTS 1100

/* In parts, for one answer is awaited for 20 s. */
static void export_many(struct tenant *t)
{
	for (unsigned count = 100; count <= EXPORTS; count += 100)
		expect(t, OK, "exportmany 2m %u", count);
}

static void more_than_the_region_has_places_for_comes_back_when_it_ends(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);
	char all[64];

	snprintf(all, sizeof(all), "alloc all %lluk",
		(unsigned long long)((4 * GIB - CONTEXT_BYTES) / KIB));
	for (unsigned round = 0; round < 2; round++) {
		export_many(t);
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + EXPORTS * 2 * MIB);
		expect(t, OUT_OF_MEMORY, "%s", all);
		expect(t, OK, "endmany");
		expect(t, OK, "%s", all);
		assert_int_equal(slice_agreed(slice, 0), 4 * GIB);
		expect(t, OK, "free all");
	}
	assert_int_equal(tenant_end(t), 0);
}

static void another_slice_cannot_open_more_than_its_quota(void **state)
{
	struct slice *a = slice_new(*state, "a", "2g", NULL),
		     *b = slice_new(*state, "b", "1g", NULL);
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

/* A maker without the library marks nothing: its size is found out. */
static void what_nobody_marked_is_charged_for_what_it_is(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "1g", NULL);
	struct tenant *maker, *user = tenant_new(slice);

	node->is_without_library = true;
	maker = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	expect(maker, OK, "primary 0");
	for (unsigned i = 0; i < 2; i++) {
		const char *size = i ? "700m" : "64m";

		expect(maker, OK, "createx h %s", size);
		expect(maker, OK, "export f h");
		hand_over(maker, user, "f");
		expect(user, i ? OUT_OF_MEMORY : OK, "import h f");
		expect_books(slice, 1, i ? 0 : 64 * MIB);
		if (!i)
			expect(user, OK, "release h");
		expect_books(slice, 1, 0);
		expect(user, 0, "closefd f");
	}
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

static void a_share_may_say_that_no_descriptors_are_given_out(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	char text[1024];

	expect(t, OK, "createx h 64m");
	expect(t, OK, "newpoolx p");
	expect(t, OK, "alloc a 64m");
	snprintf(text, sizeof(text),
		"vgpu-share 1\nslice a\nregion %s\nexports none\ndevice * memory 1g\nend\n",
		slice->region);
	slice_write(slice, text);
	/* A refusal reads it anew. */
	expect(t, OUT_OF_MEMORY, "alloc x 2g");
	expect(t, NOT_SUPPORTED, "export f h");
	expect(t, NOT_SUPPORTED, "exportpool f p");
	expect(t, NOT_SUPPORTED, "range f a 64m");
	/* Handles that are bytes keep nothing. */
	expect(t, OK, "ipcget a");
	expect(t, OK, "exportfabric h");
	assert_int_equal(tenant_end(t), 0);
}

static void a_shared_pool_stays_charged_and_its_users_pay_nothing(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	expect(maker, OK, "newpoolx p");
	expect(maker, OK, "frompool a p 40m");
	expect(maker, OK, "exportpool f p");
	hand_over(maker, user, "f");
	expect(user, OK, "importpool p f");
	expect(maker, OK, "exportptr a");
	expect(user, OK, "importptr a p %s", bytes_of(maker, "data"));
	/* A refusal compares with NVML, which shows the pool for its maker. */
	expect(maker, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(slice, 2, 64 * MIB);
	expect(maker, OK, "frompool b p 40m");
	expect(maker, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(slice, 2, 96 * MIB);
	expect(maker, OK, "freeasync a");
	expect(maker, OK, "freeasync b");
	expect(maker, OK, "sync");
	expect_beside(slice, 2, 96 * MIB);
	expect(user, OK, "free a");
	tenant_kill(maker, SIGKILL);
	expect(user, 0, "closefd f");
	expect(user, OUT_OF_MEMORY, "alloc x 2g");
	expect_beside(slice, 1, 96 * MIB);
	assert_int_equal(tenant_end(user), 0);
}

/* Whichever of its handles it is opened by, it is held. */
static void a_pool_is_opened_by_its_second_handle(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL),
		     *other = slice_new(*state, "b", "2g", NULL);
	struct tenant *stranger = tenant_new(other);

	for (int i = 0; i < 2; i++) {
		struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);
		char bytes[256];

		expect(maker, OK, "newpoolx p");
		expect(maker, OK, "frompool a p 40m");
		if (i == 0)
			expect(maker, OK, "exportpool f p");
		expect(maker, OK, "exportpoolfabric p");
		snprintf(bytes, sizeof(bytes), "%s", bytes_of(maker, "handle"));
		if (i == 1)
			expect(maker, OK, "exportpool f p");
		if (i == 0) {
			expect(user, OK, "importpoolfabric p %s", bytes);
		} else {
			hand_over(maker, user, "f");
			expect(user, OK, "importpool p f");
			expect(user, 0, "closefd f");
		}
		expect(stranger, OUT_OF_MEMORY, "importpoolfabric p %s", bytes);
		expect(maker, OK, "exportptr a");
		expect(user, OK, "importptr a p %s", bytes_of(maker, "data"));
		tenant_kill(maker, SIGKILL);
		expect(user, OUT_OF_MEMORY, "alloc x 2g");
		expect_beside(slice, 1, 64 * MIB);
		assert_int_equal(tenant_end(user), 0);
	}
	assert_int_equal(tenant_end(stranger), 0);
}

static void a_pool_that_was_destroyed_cannot_be_shared(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "newpoolx p");
	expect(t, OK, "frompool a p 40m");
	expect(t, OK, "endpool p");
	expect(t, INVALID_VALUE, "exportpool f p");
	expect_beside(slice, 1, 64 * MIB);
	expect(t, OK, "free a");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_pool_without_a_place_in_the_region_cannot_be_shared(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *filler = tenant_new(slice), *t = tenant_new(slice);

	export_many(filler);
	expect(t, OK, "newpoolx p");
	expect(t, OK, "frompool a p 40m");
	expect(t, OUT_OF_MEMORY, "exportpool f p");
	assert_int_equal(tenant_end(filler), 0);
	/* It looks for processes that have ended. */
	expect(t, OK, "sleep 150");
	expect(t, OK, "exportpool f p");
	assert_int_equal(tenant_end(t), 0);
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
		test_with_node(an_imported_handle_is_charged_once),
		test_with_node(a_fabric_handle_is_charged_once),
		test_with_node(a_process_that_imports_its_own_memory_pays_once),
		test_with_node(memory_in_descriptors_counts_until_they_are_closed),
		test_with_node(a_descriptor_outlives_its_maker_in_a_process_without_cuda),
		test_with_node(another_slice_pays_for_what_it_opens),
		test_with_node(more_than_the_region_has_places_for_comes_back_when_it_ends),
		test_with_node(another_slice_cannot_open_more_than_its_quota),
		test_with_node(what_nobody_marked_is_charged_for_what_it_is),
		test_with_node(a_share_may_say_that_no_descriptors_are_given_out),
		test_with_node(a_shared_pool_stays_charged_and_its_users_pay_nothing),
		test_with_node(a_pool_is_opened_by_its_second_handle),
		test_with_node(a_pool_that_was_destroyed_cannot_be_shared),
		test_with_node(a_pool_without_a_place_in_the_region_cannot_be_shared),
		test_with_node(the_end_of_a_context_lets_go_of_what_is_shared_in_it),
		test_with_node(a_death_at_any_instant_of_sharing_is_settled),
		test_with_node(sharing_and_letting_go_leaves_nothing),
		test_with_node(what_is_shared_is_not_charged_again_as_other),
		test_with_node(what_the_driver_refuses_leaves_no_charge),
	};

	return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
