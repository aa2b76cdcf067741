/* SPDX-License-Identifier: Apache-2.0 */
/* A limited slice asks the driver who else works, seldom, and is none the worse for any answer. */
#include "tests/tenant/meter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy/untracked.h"
#include "region/layout.h"

#define KERNEL_NS     300000
#define TOIL_MS	      2500
#define NOT_SUPPORTED 3

static struct tenant *start(struct slice *slice, const char *limit)
{
	struct tenant *t = tenant_start(
		slice->node, slice, "linked", limit, "GPU_CORE_UTILIZATION_POLICY=force", NULL);

	assert_int_equal(inject_set_kernel(slice->node->machine, "k", KERNEL_NS), 0);
	expect(t, OK, "primary 0");
	expect(t, OK, "module m");
	return t;
}

static void alone_all_that_elapses_is_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = start(slice, "CUDA_DEVICE_SM_LIMIT=40");
	const struct region_compute *books;

	expect(t, OK, "toil m %d", TOIL_MS);
	books = meter_books(slice);
	assert_int_equal(books->counted_permille, UNTRACKED_ALL_PERMILLE);
	assert_int_equal((uint32_t)books->untracked_poller, 1); /* the first slot's process asked */
	assert_true(books->elapsed_ns > 0);
	assert_int_equal(books->elapsed_ns, books->busy_ns);
	assert_int_equal(tenant_end(t), 0);
}

/* Busy for good, in time slices of the driver's. */
static struct tenant *start_without_library(struct node *node)
{
	struct tenant *t;

	node->is_without_library = true;
	t = tenant_start(node, NULL, "linked", NULL);
	node->is_without_library = false;
	expect(t, OK, "primary 0");
	tenant_tell(t, "compute launch 500 each=64");
	return t;
}

/* In permille, from the third second on. */
static unsigned beside_one_without(struct node *node, const char *work)
{
	struct slice *slice = meter_slice(node, "a", "", "cores 30");
	struct tenant *other = start_without_library(node);
	struct tenant *t = meter_start(slice, "linked", 0, NULL, work);
	unsigned got;

	assert_int_equal(tenant_answer(t), OK);
	usleep(2000000);
	/* A kernel of 20 ms more or less is no matter then. */
	got = meter_permille(slice, 0, 4 * METER_WINDOW_US);
	print_message("%s: %u permille\n", work, got);
	tenant_kill(t, SIGKILL);
	tenant_kill(other, SIGKILL);
	return got;
}

#define BESIDE(name, work)                                                   \
	static void name(void **state)                                       \
	{                                                                    \
		assert_in_range(beside_one_without(*state, work), 270, 330); \
	}
BESIDE(short_kernels_have_their_limit_beside_others, "compute launch 200")
BESIDE(steps_have_their_limit_beside_others, "compute launch 200 each=40")
BESIDE(waits_have_their_limit_beside_others, "compute launch 200 sync")
BESIDE(graphs_have_their_limit_beside_others, "compute graph 100")
BESIDE(kernels_of_many_slices_have_their_limit_beside_others, "compute launch 20000")

static void without_a_limit_nobody_asks(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = start(slice, "CUDA_DEVICE_SM_LIMIT=100");

	expect(t, OK, "toil m %d", TOIL_MS / 2);
	assert_int_equal(meter_books(slice)->untracked_poller, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void one_of_the_slice_asks_for_all(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *one = start(slice, "CUDA_DEVICE_SM_LIMIT=40"),
		      *two = start(slice, "CUDA_DEVICE_SM_LIMIT=40");
	const struct region_compute *books;

	tenant_tell(one, "toil m %d", TOIL_MS);
	tenant_tell(two, "toil m %d", TOIL_MS);
	assert_int_equal(tenant_answer(one), OK);
	assert_int_equal(tenant_answer(two), OK);
	books = meter_books(slice);
	assert_int_equal(books->counted_permille, UNTRACKED_ALL_PERMILLE);
	assert_in_range((uint32_t)books->untracked_poller, 1, 2);
	assert_int_equal(tenant_end(one), 0);
	assert_int_equal(tenant_end(two), 0);
}

static void a_driver_that_does_not_tell_changes_nothing(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct inject_rule mute = {
		.tag = "*", .symbol = "nvmlDeviceGetProcessUtilization", .result = NOT_SUPPORTED};
	struct tenant *t;
	const struct region_compute *books;

	assert_true(inject_add_rule(node->machine, &mute) >= 0);
	t = start(slice, "CUDA_DEVICE_SM_LIMIT=40");
	expect(t, OK, "toil m %d", TOIL_MS);
	books = meter_books(slice);
	assert_int_equal(books->counted_permille, 0);
	assert_true(books->busy_ns > 0);
	assert_int_equal(books->elapsed_ns, books->busy_ns);
	assert_int_equal(tenant_end(t), 0);
}

/* What a region says is believed within its bounds: nobody is charged nothing. */
static void a_word_that_says_nothing_is_charged_is_not_believed(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = start(slice, "CUDA_DEVICE_SM_LIMIT=40");
	off_t at =
		(off_t)(offsetof(struct region_file, own) + offsetof(struct region_own, compute) +
			offsetof(struct region_compute, counted_permille));
	uint64_t little = 1;
	int fd = open(slice->region, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	expect(t, OK, "toil m 100");
	assert_int_equal(pwrite(fd, &little, sizeof(little), at), sizeof(little));
	close(fd);
	expect(t, OK, "toil m 300");
	assert_int_equal(meter_books(slice)->elapsed_ns, meter_books(slice)->busy_ns);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(alone_all_that_elapses_is_charged),
		test_with_node(short_kernels_have_their_limit_beside_others),
		test_with_node(steps_have_their_limit_beside_others),
		test_with_node(waits_have_their_limit_beside_others),
		test_with_node(graphs_have_their_limit_beside_others),
		test_with_node(kernels_of_many_slices_have_their_limit_beside_others),
		test_with_node(without_a_limit_nobody_asks),
		test_with_node(one_of_the_slice_asks_for_all),
		test_with_node(a_driver_that_does_not_tell_changes_nothing),
		test_with_node(a_word_that_says_nothing_is_charged_is_not_believed),
	};

	return cmocka_run_group_tests_name("neighbours", tests, NULL, NULL);
}
