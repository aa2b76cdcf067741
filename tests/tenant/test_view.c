/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant sees of a card is its slice; what is nobody's slice is not touched. */
#include "gpu/abi/nvml.h"
#include "tests/tenant/tenant.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void cuda_shows_the_quota_and_what_the_slice_has_left(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice), *other = tenant_new(slice);

	expect(other, OK, "alloc a 100m");
	expect(t, OK, "alloc a 64m");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	assert_int_equal(tenant_number(t, "free"), 2 * GIB - 2 * CONTEXT_BYTES - 164 * MIB);
	expect(t, OK, "totalmem 0");
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	expect(t, OK, "infonull");
	assert_int_equal(tenant_number(t, "total"), 2 * GIB);
	assert_int_equal(tenant_number(t, "free"), 2 * GIB - 2 * CONTEXT_BYTES - 164 * MIB);
	tenant_kill(other, 9);
	expect(t, OK, "free a");
	expect(t, OUT_OF_MEMORY, "alloc a 4g");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "free"), 2 * GIB - CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

/* Programs that list devices divided by the memory of one that was not granted. */
static void nvml_shows_no_device_that_was_not_granted(void **state)
{
	struct node *node = *state;
	struct tenant *t = tenant_start(node, NULL, "found-dlopen", NULL);
	char names[NODE_DEVICES][3][96], expected[200];
	unsigned index[NODE_DEVICES];
	const char *at;

	/* what there is */
	expect(t, OK, "devices");
	assert_int_equal(tenant_number(t, "count"), 2);
	at = strchr(t->answer, '[');
	for (unsigned i = 0; i < 2; i++, at = strchr(at + 1, '['))
		assert_int_equal(sscanf(at, "[%u %95s %95s %95[^]]", &index[i], names[i][0],
					 names[i][1], names[i][2]),
			4);
	assert_int_equal(tenant_end(t), 0);
	for (unsigned granted = 0; granted < 2; granted++) {
		struct slice *slice = slice_new(
			node, granted ? "b" : "a", granted ? NULL : "1g", granted ? "1g" : NULL);

		t = tenant_start(node, slice, "found-dlopen", NULL);
		expect(t, OK, "devices");
		assert_int_equal(tenant_number(t, "first"), 1);
		assert_int_equal(tenant_number(t, "count"), 1);
		snprintf(expected, sizeof(expected), "[0 %.95s ", names[granted][0]);
		assert_non_null(strstr(t->answer, expected));
		assert_int_equal(tenant_number(t, "beyond"), NVML_ERROR_INVALID_ARGUMENT);
		for (unsigned i = 0; i < 2; i++) {
			expect(t, OK, "device %s %s %s", names[i][0], names[i][1], names[i][2]);
			assert_non_null(strstr(t->answer, i == granted ? " 0 0 0 0" : " 6 6 6 6"));
		}
		assert_int_equal(tenant_end(t), 0);
	}
	t = tenant_start(node, slice_new(node, "c", "1g", "1g"), "found-dlopen", NULL);
	expect(t, OK, "devices");
	assert_int_equal(tenant_number(t, "count"), 2);
	assert_int_equal(tenant_end(t), 0);
}

static void nvml_shows_the_slice_in_both_versions(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	struct tenant *watcher = tenant_start(*state, slice, "found-dlopen", NULL);
	struct tenant *const both[] = {t, watcher};

	expect(t, OK, "alloc a 64m");
	for (unsigned i = 0; i < 2; i++) {
		expect(both[i], OK, "nvml 0");
		assert_int_equal(tenant_number(both[i], "total"), 2 * GIB);
		assert_int_equal(tenant_number(both[i], "used"), CONTEXT_BYTES + 64 * MIB);
		assert_int_equal(
			tenant_number(both[i], "free"), 2 * GIB - CONTEXT_BYTES - 64 * MIB);
		expect(both[i], OK, "nvml2 0");
		assert_int_equal(tenant_number(both[i], "total"), 2 * GIB);
		assert_int_equal(tenant_number(both[i], "used"), CONTEXT_BYTES + 64 * MIB);
		assert_int_equal(
			tenant_number(both[i], "free"), 2 * GIB - CONTEXT_BYTES - 64 * MIB);
		assert_int_equal(tenant_number(both[i], "reserved"), 0);
	}
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 64 * MIB);
	assert_int_equal(tenant_end(watcher), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_wrong_version_word_is_nvmls_to_refuse(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", NULL), *bare;
	int want;

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	want = tenant_ask(bare, "nvml2 0 7");
	assert_int_not_equal(want, 0);
	expect(t, want, "nvml2 0 7");
	want = tenant_ask(bare, "nvml 9");
	assert_int_not_equal(want, 0);
	expect(t, want, "nvml 9");
}

static void a_program_ends_nvml_as_often_as_it_began_it(void **state)
{
	struct tenant *t = tenant_new(slice_new(*state, "a", "1g", NULL));

	/* The library begins it for itself. */
	expect(t, OUT_OF_MEMORY, "alloc a 1g");
	expect(t, 1 /* UNINITIALIZED */, "endnvml");
	expect(t, OK, "nvml 0");
	expect(t, OK, "nvml 0");
	expect(t, OK, "endnvml");
	expect(t, OK, "endnvml");
	expect(t, 1, "endnvml");
	assert_int_equal(tenant_end(t), 0);
}

static void two_slices_on_one_card_do_not_see_each_other(void **state)
{
	struct node *node = *state;
	struct slice *a = slice_new(node, "a", "1g", NULL), *b = slice_new(node, "b", "2g", NULL);
	struct tenant *in_a = tenant_new(a), *in_b = tenant_new(b);

	expect(in_a, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(in_a, "count"), 7);
	expect(in_b, OK, "info");
	assert_int_equal(tenant_number(in_b, "total"), 2 * GIB);
	assert_int_equal(tenant_number(in_b, "free"), 2 * GIB - CONTEXT_BYTES);
	expect(in_b, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(in_b, "count"), 23);
	assert_int_equal(slice_agreed(a, 0), CONTEXT_BYTES + 448 * MIB);
	assert_int_equal(slice_agreed(b, 0), CONTEXT_BYTES + 1472 * MIB);
	tenant_kill(in_a, 9);
	expect(in_b, OUT_OF_MEMORY, "alloc x 64m");
	assert_int_equal(slice_agreed(b, 0), CONTEXT_BYTES + 1472 * MIB);
	assert_int_equal(tenant_end(in_b), 0);
}

static void free_is_never_more_than_the_card_has(void **state)
{
	struct node *node = *state;
	struct slice *big = slice_new(node, "big", "unlimited", NULL);
	struct slice *slice = slice_new(node, "a", "100g", NULL);
	struct tenant *hog = tenant_new(big), *t = tenant_new(slice);

	expect(hog, OK, "fill 1g 130");
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), 100 * GIB);
	assert_int_equal(tenant_number(t, "free"), machine_free_bytes(node->machine, 0));
	/* the card is full before the quota is: the driver's refusal, and nothing stays charged */
	expect(t, OUT_OF_MEMORY, "alloc a 20g");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(hog), 0);
}

static void a_quota_above_the_card_shows_the_card(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "500g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), machine_board(node->machine)->total_bytes);
	expect(t, OK, "totalmem 0");
	assert_int_equal(tenant_number(t, "total"), machine_board(node->machine)->total_bytes);
	assert_int_equal(tenant_end(t), 0);
}

static void without_any_quota_the_library_does_nothing(void **state)
{
	struct node *node = *state;
	struct tenant *t, *bare;
	bool was_there = access("/tmp/cudevshr.cache", F_OK) == 0;
	char with[ANSWER_BYTES];

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	t = tenant_start(node, NULL, "linked", NULL);
	expect(t, OK, "primary 0");
	expect(t, OK, "fill 1g 60");
	expect(bare, OK, "primary 0");
	expect(t, OK, "info");
	memcpy(with, t->answer, sizeof(with));
	expect(bare, OK, "info");
	assert_string_equal(with, bare->answer);
	expect(t, OK, "nvml 0");
	memcpy(with, t->answer, sizeof(with));
	expect(bare, OK, "nvml 0");
	assert_string_equal(with, bare->answer);
	expect(t, OK, "nvml2 0");
	memcpy(with, t->answer, sizeof(with));
	expect(bare, OK, "nvml2 0");
	assert_string_equal(with, bare->answer);
	assert_int_equal(access("/tmp/cudevshr.cache", F_OK) == 0, was_there);
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(bare), 0);
}

/* What the library may add to what a program catches: signals.h. */
#define TAKEN (UINT64_C(1) << (SIGUSR1 - 1) | UINT64_C(1) << (SIGUSR2 - 1))

/* Takes the two signals out of what "self" says is caught. */
static void forget_taken(char *answer)
{
	char *at = strstr(answer, "SigCgt:"), *digits;
	char text[17];

	assert_non_null(at);
	digits = at + strcspn(at, "0123456789abcdef");
	snprintf(text, sizeof(text), "%016llx",
		(unsigned long long)(strtoull(digits, NULL, 16) & ~TAKEN));
	memcpy(digits, text, 16);
}

static void a_cuda_process_keeps_its_signals_umask_threads_and_descriptors(void **state)
{
	static const char *const words[] = {"init", "primary 0", "alloc a 64m", "async b 64m",
		"freeasync b", "vmm c 64m", "nvml 0", "sync", "newctx d 0", "endctx d"};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", NULL), *bare;

	node->is_without_library = true;
	bare = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		expect(t, OK, "%s", words[i]);
		expect(bare, OK, "%s", words[i]);
		expect(t, OK, "self");
		expect(bare, OK, "self");
		forget_taken(t->answer);
		if (strcmp(t->answer, bare->answer) != 0)
			print_message("after %s\n", words[i]);
		assert_string_equal(t->answer, bare->answer);
	}
	assert_int_equal(tenant_end(t), 0);
	assert_int_equal(tenant_end(bare), 0);
}

static void an_unlimited_slice_is_booked_and_not_limited(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "unlimited", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fill 1g 100");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 100 * GIB);
	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), machine_board(node->machine)->total_bytes);
	assert_int_equal(tenant_number(t, "free"), machine_free_bytes(node->machine, 0));
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(cuda_shows_the_quota_and_what_the_slice_has_left),
		test_with_node(nvml_shows_no_device_that_was_not_granted),
		test_with_node(nvml_shows_the_slice_in_both_versions),
		test_with_node(a_wrong_version_word_is_nvmls_to_refuse),
		test_with_node(a_program_ends_nvml_as_often_as_it_began_it),
		test_with_node(two_slices_on_one_card_do_not_see_each_other),
		test_with_node(free_is_never_more_than_the_card_has),
		test_with_node(a_quota_above_the_card_shows_the_card),
		test_with_node(without_any_quota_the_library_does_nothing),
		test_with_node(a_cuda_process_keeps_its_signals_umask_threads_and_descriptors),
		test_with_node(an_unlimited_slice_is_booked_and_not_limited),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
