/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and pools that leave a process as a descriptor or a fabric handle: charged once, until nobody keeps them. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/machine/inject.h"
#include "tests/tenant/sharing.h"

#define NOT_SUPPORTED 801

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

/* NVML shows it for its maker once more, which is no other memory. */
static void what_its_maker_imports_again_is_paid_for_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "createx h 256m");
	expect(t, OK, "export f h");
	expect(t, OK, "release h");
	expect_beside(slice, 1, 256 * MIB);
	expect(t, OK, "import i f");
	usleep(1200000);
	expect(t, OK, "alloc a 2m");
	expect(t, OK, "free a");
	expect_beside(slice, 1, 256 * MIB);
	expect(t, OK, "release i");
	expect(t, 0, "closefd f");
	expect_beside(slice, 1, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* By whatever it has it: a handle, a mapping alone, an import; and by descriptor or fabric handle. */
static void however_often_a_process_imports_it_pays_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);
	char bytes[256];

	expect(maker, OK, "createx h 64m");
	expect(maker, OK, "export f h");
	expect(maker, OK, "exportfabric h");
	snprintf(bytes, sizeof(bytes), "%s", bytes_of(maker, "handle"));
	hand_over(maker, user, "f");
	for (unsigned i = 0; i < 2; i++) {
		struct tenant *t = i ? user : maker;

		expect(t, OK, "import i f");
		expect(t, OK, "import j f");
		expect(t, OK, "importfabric k %s", bytes);
		expect(t, OK, "export g j");
		expect(t, OK, "import l g");
		expect(t, 0, "closefd g");
		expect_beside(slice, 2, 64 * MIB);
		expect(t, OK, "reserve v 64m");
		expect(t, OK, "map v 0 64m l");
		expect(t, OK, "release i");
		expect(t, OK, "release j");
		expect(t, OK, "release k");
		expect(t, OK, "release l");
		if (!i)
			expect(t, OK, "release h");
		/* No handle is left, as after most programs' imports. */
		expect(t, OK, "import i f");
		expect_beside(slice, 2, 64 * MIB);
		expect(t, OK, "release i");
		expect(t, 0, "closefd f");
		expect_beside(slice, 2, 64 * MIB);
	}
	expect(maker, OK, "unmap v 0 64m");
	expect_beside(slice, 2, 64 * MIB);
	expect(user, OK, "unmap v 0 64m");
	expect_beside(slice, 2, 0);
	assert_int_equal(tenant_end(maker), 0);
	assert_int_equal(tenant_end(user), 0);
}

/* Another thread has the call in the driver when the next one begins. */
static void ask_aside(struct node *node, struct tenant *t, const char *symbol, const char *command)
{
	struct inject_rule rule = {.tag = "a", .times = 1, .delay_ns = 300000000};

	snprintf(rule.symbol, sizeof(rule.symbol), "%s", symbol);
	assert_true(inject_add_rule(node->machine, &rule) >= 0);
	expect(t, OK, "aside %s", command);
	usleep(100000);
}

/* Twice as much would not fit. */
static void who_imports_beside_another_thread_pays_once(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *maker = tenant_new(slice), *user = tenant_new(slice);

	expect(maker, OK, "createx h 600m");
	expect(maker, OK, "export f h");
	hand_over(maker, user, "f");
	ask_aside(*state, user, "cuMemImportFromShareableHandle", "import h f");
	expect(user, OK, "import i f");
	expect(user, OK, "joined");
	expect_beside(slice, 2, 600 * MIB);
	expect(user, OK, "release h");
	/* The last one, which goes as another comes. */
	ask_aside(*state, user, "cuMemRelease", "release i");
	expect(user, OK, "import h f");
	expect(user, OK, "joined");
	expect_beside(slice, 2, 600 * MIB);
	inject_clear_rules(slice->node->machine);
	assert_int_equal(tenant_end(user), 0);
	assert_int_equal(tenant_end(maker), 0);
}

/* Nothing would tell that it is the same: it would be charged once more, and stay so where the program cannot let it go. */
static void what_cannot_be_retained_is_not_imported_a_second_time(void **state)
{
	const char *const calls[] = {
		"cuMemRetainAllocationHandle", "cuMemAddressReserve", "cuMemMap"};
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "createx h 64m");
	expect(t, OK, "export f h");
	for (unsigned i = 0; i < 3; i++) {
		struct inject_rule rule = {.tag = "a", .times = 1, .result = 999};

		snprintf(rule.symbol, sizeof(rule.symbol), "%s", calls[i]);
		assert_true(inject_add_rule(slice->node->machine, &rule) >= 0);
		expect(t, OUT_OF_MEMORY, "import i f");
		expect_books(slice, 1, 64 * MIB);
		inject_clear_rules(slice->node->machine);
		expect(t, OK, "import j f");
		expect(t, OK, "release j");
		expect_beside(slice, 1, 64 * MIB);
	}
	expect(t, OK, "release h");
	expect(t, 0, "closefd f");
	expect(t, OUT_OF_MEMORY, "alloc x 1g");
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

#define PLACES 1024

/* As many as the region has places for; one more is not exported. In parts, for one answer is awaited for 20 s. */
static void export_many(struct tenant *t)
{
	for (unsigned count = 128; count <= PLACES; count += 128)
		expect(t, OK, "exportmany 2m %u", count);
	expect(t, OUT_OF_MEMORY, "exportmany 2m %u", PLACES + 1);
	expect(t, OK, "release one");
}

static void what_the_region_has_no_place_for_is_not_exported(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);
	char all[64];

	snprintf(all, sizeof(all), "alloc all %lluk",
		(unsigned long long)((4 * GIB - CONTEXT_BYTES) / KIB));
	for (unsigned round = 0; round < 2; round++) {
		export_many(t);
		assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + PLACES * 2 * MIB);
		expect(t, OUT_OF_MEMORY, "%s", all);
		expect(t, OK, "endmany");
		expect(t, OK, "%s", all);
		assert_int_equal(slice_agreed(slice, 0), 4 * GIB);
		expect(t, OK, "free all");
	}
	assert_int_equal(tenant_end(t), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(an_imported_handle_is_charged_once),
		test_with_node(a_fabric_handle_is_charged_once),
		test_with_node(a_process_that_imports_its_own_memory_pays_once),
		test_with_node(what_its_maker_imports_again_is_paid_for_once),
		test_with_node(however_often_a_process_imports_it_pays_once),
		test_with_node(who_imports_beside_another_thread_pays_once),
		test_with_node(what_cannot_be_retained_is_not_imported_a_second_time),
		test_with_node(memory_in_descriptors_counts_until_they_are_closed),
		test_with_node(a_descriptor_outlives_its_maker_in_a_process_without_cuda),
		test_with_node(what_the_region_has_no_place_for_is_not_exported),
		test_with_node(what_nobody_marked_is_charged_for_what_it_is),
		test_with_node(a_share_may_say_that_no_descriptors_are_given_out),
		test_with_node(a_shared_pool_stays_charged_and_its_users_pay_nothing),
		test_with_node(a_pool_is_opened_by_its_second_handle),
		test_with_node(a_pool_that_was_destroyed_cannot_be_shared),
		test_with_node(a_pool_without_a_place_in_the_region_cannot_be_shared),
	};

	return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
