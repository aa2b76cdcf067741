/* SPDX-License-Identifier: Apache-2.0 */
/* More than there is: a card that is full, and a quota that was lowered below what is in use. */
#include "tests/tenant/tenant.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region/snapshot.h"

#define OVERSUBSCRIBE "CUDA_OVERSUBSCRIBE=true"
#define OOM_KILLER    "ACTIVE_OOM_KILLER=1"

/* So long a process at a time goes by, at the latest: two looks, and what comes between. */
#define LINGER "linger 1500"

/* What a call that waits for nobody may take on a busy machine, in us. */
#define QUICK_US 100000

/* A tenant of a slice on device 0, on which a stranger has then taken all that was left. */
static struct tenant *new_through(
	const char *door, struct slice *slice, const char *option, const char *preparation)
{
	struct tenant *t = tenant_start(slice->node, slice, door, option, NULL), *stranger;

	expect(t, OK, "primary 0");
	if (preparation)
		expect(t, OK, "%s", preparation);
	stranger = tenant_start(slice->node, NULL, "linked", NULL);
	expect(stranger, OK, "primary 0");
	expect(stranger, OUT_OF_MEMORY, "fill 1g");
	expect(stranger, OUT_OF_MEMORY, "fill 2m");
	return t;
}

static struct tenant *new_on_a_full_card(
	struct slice *slice, const char *option, const char *preparation)
{
	return new_through("linked", slice, option, preparation);
}

static void expect_held(struct slice *slice, uint64_t books, uint64_t on_the_card)
{
	uint64_t seen = slice_books(slice, 0) - CONTEXT_BYTES - books;

	/* the library may have seen what is not charged at once, and rounded it up to its unit */
	assert_true(seen == 0 || seen - slice->slack_bytes < 64 * KIB);
	assert_int_equal(slice_truth(slice, 0), CONTEXT_BYTES + on_the_card + slice->slack_bytes);
}

static unsigned errors_with(struct node *node, const char *part)
{
	char errors[8192], *at = errors;
	unsigned count = 0;

	node_read_errors(node, errors, sizeof(errors));
	while ((at = strstr(at, part))) {
		at++;
		count++;
	}
	return count;
}

static void without_the_option_a_full_card_is_a_full_card(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, "CUDA_OVERSUBSCRIBE=false", NULL);

	expect(t, OUT_OF_MEMORY, "alloc a 64m");
	expect(t, OUT_OF_MEMORY, "pitch a 1000 1000");
	expect(t, OUT_OF_MEMORY, "async a 64m");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_the_card_cannot_hold_is_held_by_the_host_and_charged(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, "alloc before 64m");

	expect(t, OK, "alloc a 63m");
	expect_held(slice, 128 * MIB, 64 * MIB);
	expect(t, OK, "write a 63m");
	expect_held(slice, 128 * MIB, 64 * MIB);
	expect(t, OK, "about a");
	assert_int_equal(tenant_number(t, "managed"), 1);
	expect(t, OK, "about before");
	assert_int_equal(tenant_number(t, "managed"), 0);
	expect(t, OK, "pitch b 1000 1000");
	assert_int_equal(tenant_number(t, "pitch"), 1024);
	expect(t, OK, "write b 1024000");
	expect_held(slice, 130 * MIB, 64 * MIB);
	expect(t, OK, "alloc small 100");
	expect_held(slice, 132 * MIB, 64 * MIB);
	expect(t, OK, "free small");
	expect(t, OK, "free b");
	expect(t, OK, "free a");
	expect(t, INVALID_VALUE, "free a");
	expect_held(slice, 64 * MIB, 64 * MIB);
	/* its own room on the card is used again */
	expect(t, OK, "free before");
	expect(t, OK, "alloc a 64m");
	expect_held(slice, 64 * MIB, 64 * MIB);
	assert_int_equal(tenant_end(t), 0);
}

static void the_quota_holds_beyond_the_card_too(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL);

	expect(t, OUT_OF_MEMORY, "fill 64m");
	assert_int_equal(tenant_number(t, "count"), 7);
	/* as long as a pool's growth would have fitted the quota */
	expect(t, OUT_OF_MEMORY, "fillasync 2m");
	assert_int_equal(tenant_number(t, "count"), 14);
	expect_held(slice, 476 * MIB, 0);
	expect(t, OK, "drop");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void an_unlimited_slice_gets_what_the_card_has(void **state)
{
	struct slice *slice = slice_new(*state, "a", "unlimited", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL);

	expect(t, OUT_OF_MEMORY, "alloc a 64m");
	assert_int_equal(tenant_end(t), 0);
}

static void a_quota_larger_than_the_card_is_shown(void **state)
{
	struct slice *slice = slice_new(*state, "a", "200g", "200g");
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL), *without;

	expect(t, OK, "info");
	assert_int_equal(tenant_number(t, "total"), 200 * GIB);
	assert_int_equal(tenant_number(t, "free"), 200 * GIB - CONTEXT_BYTES);
	expect(t, OK, "totalmem 0");
	assert_int_equal(tenant_number(t, "total"), 200 * GIB);
	assert_int_equal(tenant_end(t), 0);
	without = tenant_start(*state, slice, "linked", NULL);
	expect(without, OK, "primary 1");
	expect(without, OK, "info");
	assert_true(tenant_number(without, "total") < 200 * GIB);
	assert_int_equal(tenant_end(without), 0);
}

static void a_free_in_stream_order_waits_for_nobody_and_goes_with_the_stream(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, "stream s");

	expect(t, OK, "async a 64m s");
	expect_held(slice, 64 * MIB, 0);
	expect(t, OK, "write a 64m");
	expect(t, OK, "hostwork s 400");
	expect(t, OK, "time freeasync a s");
	assert_true(tenant_number(t, "us") < QUICK_US);
	expect(t, INVALID_VALUE, "freeasync a s");
	expect(t, OK, "time sync");
	expect(t, OK, "streamsync s");
	expect_held(slice, 0, 0);
	/* plain memory, freed in stream order by a program that may do so */
	expect(t, OK, "alloc b 64m");
	expect(t, OK, "freeasync b");
	expect(t, OK, "sync");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

/* Each free looked at all of those before it, and from the first one for each. */
static void many_frees_in_stream_order_behind_work_wait_for_nobody(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t before;

	expect(t, OK, "stream s");
	expect(t, OK, "stream z");
	expect(t, OK, "hostwork s 1");
	expect(t, OK, "sync");
	before = slice_agreed(slice, 0);
	expect(t, OK, "fill 64k 4000");
	expect(t, OK, "hostwork s 2000");
	expect(t, OK, "time dropasync s");
	assert_true(tenant_number(t, "us") < 5 * QUICK_US);
	expect(t, OK, "time streamsync z");
	assert_true(tenant_number(t, "us") < QUICK_US);
	expect(t, OK, "streamsync s");
	assert_int_equal(slice_agreed(slice, 0), before);
	assert_int_equal(tenant_end(t), 0);
}

/* What waits in one stream is behind no other's work. */
static void what_is_behind_long_work_keeps_no_other_stream_waiting(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t before;

	expect(t, OK, "stream s");
	expect(t, OK, "stream z");
	expect(t, OK, "hostwork s 1");
	expect(t, OK, "sync");
	before = slice_agreed(slice, 0);
	expect(t, OK, "fill 64k 100");
	expect(t, OK, "alloc a 1g");
	expect(t, OK, "alloc b 64m");
	expect(t, OK, "hostwork s 2000");
	expect(t, OK, "dropasync s");
	expect(t, OK, "freeasync a z");
	expect(t, OK, "freeasync b s");
	/* a refusal would look for it, too */
	expect(t, OK, "alloc c 1g");
	expect(t, OK, "sync");
	expect(t, OUT_OF_MEMORY, "alloc d 1g");
	assert_int_equal(slice_agreed(slice, 0), before + 1 * GIB);
	assert_int_equal(tenant_end(t), 0);
}

/* Of a pool of the program's choice, on the stream of the thread. */
static void every_form_of_an_allocation_in_stream_order_is_placed(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_through("linked-thread", slice, OVERSUBSCRIBE, "pool p");

	expect(t, OK, "frompool a p 64m");
	expect(t, OK, "async b 1");
	expect_held(slice, 66 * MIB, 0);
	expect(t, OK, "about a");
	assert_int_equal(tenant_number(t, "managed"), 1);
	expect(t, OK, "freeasync a");
	expect(t, OK, "streamsync");
	expect_held(slice, 2 * MIB, 0);
	/* freed at once, though it was allocated in stream order */
	expect(t, OK, "free b");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_a_stream_frees_is_had_back_before_a_refusal(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, "stream s");

	expect(t, OK, "async a 400m s");
	expect(t, OK, "freeasync a s");
	expect(t, OK, "alloc b 400m");
	expect(t, OK, "free b");
	expect(t, OK, "async a 400m s");
	expect(t, OK, "hostwork s 20");
	expect(t, OK, "freeasync a s");
	expect(t, OK, "async b 400m s");
	expect_held(slice, 400 * MIB, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_is_leaving_ends_with_its_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, "newctx c 0");

	expect(t, OK, "async a 64m");
	expect(t, OK, "alloc b 64m");
	expect(t, OK, "freeasync a");
	assert_int_equal(slice_books(slice, 0), 2 * CONTEXT_BYTES + 128 * MIB);
	expect(t, OK, "endctx c");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void what_a_stream_was_to_free_is_freed_after_the_streams_context(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, "newctx c 0");

	expect(t, OK, "stream s");
	expect(t, OK, "primary 0");
	expect(t, OK, "async a 64m");
	expect(t, OK, "freeasync a s");
	expect(t, OK, "endctx c");
	expect(t, OK, "sync");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_child_of_fork_knows_nothing_of_what_is_leaving(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL);

	expect(t, OK, "async a 64m");
	expect(t, OK, "freeasync a");
	expect(t, OK, "fork");
	tenant_tell(t, "_exit 0");
	assert_int_equal(tenant_answer(t), 0);
	expect(t, OK, "sync");
	expect_held(slice, 0, 0);
	assert_int_equal(tenant_end(t), 0);
}

static void the_hosts_memory_is_not_shared_with_other_processes(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL);

	node->is_loud = true;
	expect(t, OK, "alloc a 64m");
	expect(t, INVALID_VALUE, "ipc a");
	assert_int_equal(errors_with(node, "cannot be shared with other processes"), 1);
	assert_int_equal(tenant_end(t), 0);
}

static void a_device_that_cannot_says_so_once(void **state)
{
	struct inject_rule cannot = {.symbol = "cuDeviceGetAttribute", .tag = "a", .result = 801};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "200g", NULL);
	struct tenant *t;

	node->is_loud = true;
	t = new_on_a_full_card(slice, OVERSUBSCRIBE, NULL);
	assert_true(inject_add_rule(node->machine, &cannot) >= 0);
	expect(t, OUT_OF_MEMORY, "alloc a 64m");
	expect(t, OUT_OF_MEMORY, "async a 64m");
	expect(t, OK, "info");
	assert_true(tenant_number(t, "free") < 2 * MIB);
	assert_int_equal(errors_with(node, "CUDA_OVERSUBSCRIBE does nothing"), 1);
	assert_int_equal(tenant_end(t), 0);
}

static void a_switch_that_is_neither_on_nor_off_is_off_and_said(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t;

	node->is_loud = true;
	t = new_on_a_full_card(slice, "CUDA_OVERSUBSCRIBE=yes", NULL);
	expect(t, OUT_OF_MEMORY, "alloc a 64m");
	assert_int_equal(errors_with(node, "option=CUDA_OVERSUBSCRIBE value=yes"), 1);
	assert_int_equal(tenant_end(t), 0);
}

/* Two of a slice: 600 MiB and 300 MiB beside their contexts. */
static void hold(struct slice *slice, const char *option, struct tenant *ret_tenants[2])
{
	for (unsigned i = 0; i < 2; i++) {
		ret_tenants[i] = tenant_start(slice->node, slice, "linked", option, NULL);
		expect(ret_tenants[i], OK, "primary 0");
		expect(ret_tenants[i], OK, "alloc a %s", i ? "300m" : "600m");
	}
}

static void a_lowered_quota_kills_nobody_by_default(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t[2];

	hold(slice, "ACTIVE_OOM_KILLER=0", t);
	slice_change(slice, "1g", NULL);
	usleep(100000);
	for (unsigned i = 0; i < 2; i++) {
		expect(t[i], OK, "linger 300");
		expect(t[i], OUT_OF_MEMORY, "alloc b 1m");
	}
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 900 * MIB);
	assert_int_equal(tenant_end(t[0]), 0);
	assert_int_equal(tenant_end(t[1]), 0);
}

static void the_largest_of_the_slice_goes_and_no_other(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL),
		     *other = slice_new(node, "b", "8g", NULL);
	struct tenant *t[2], *neighbour;

	node->is_loud = true;
	hold(slice, OOM_KILLER, t);
	neighbour = tenant_start(node, other, "linked", OOM_KILLER, NULL);
	expect(neighbour, OK, "primary 0");
	expect(neighbour, OK, "alloc a 2g");
	slice_change(slice, "1500m", NULL);
	/* the smaller one never goes, though it comes by first */
	expect(t[1], OK, LINGER);
	expect(neighbour, OK, "linger 200");
	assert_int_equal(errors_with(node, "it ends itself"), 0);
	tenant_tell(t[0], LINGER);
	assert_int_equal(tenant_end(t[0]), SIGKILL);
	assert_int_equal(errors_with(node, "it ends itself"), 1);
	expect(t[1], OK, "linger 300");
	expect(t[1], OK, "alloc b 100m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 400 * MIB);
	assert_int_equal(tenant_end(t[1]), 0);
	assert_int_equal(tenant_end(neighbour), 0);
}

static void what_a_process_shares_counts_for_who_goes(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t[2];

	node->is_loud = true;
	for (unsigned i = 0; i < 2; i++) {
		t[i] = tenant_start(node, slice, "linked", OOM_KILLER, NULL);
		expect(t[i], OK, "primary 0");
		expect(t[i], OK, i ? "alloc a 300m" : "createx h 600m");
	}
	expect(t[0], OK, "export f h");
	slice_change(slice, "1500m", NULL);
	expect(t[1], OK, LINGER);
	assert_int_equal(errors_with(node, "it ends itself"), 0);
	tenant_tell(t[0], LINGER);
	assert_int_equal(tenant_end(t[0]), SIGKILL);
	assert_int_equal(tenant_end(t[1]), 0);
}

static void as_many_go_as_the_quota_asks_for(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);
	struct tenant *t[2];

	node->is_loud = true;
	hold(slice, OOM_KILLER, t);
	slice_change(slice, "100m", NULL);
	tenant_tell(t[0], "linger 3000 sync");
	tenant_tell(t[1], "linger 3000 sync");
	assert_int_equal(tenant_end(t[0]), SIGKILL);
	assert_int_equal(tenant_end(t[1]), SIGKILL);
}

static void whoever_gives_back_in_time_stays(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t[2];

	hold(slice, OOM_KILLER, t);
	slice_change(slice, "1500m", NULL);
	expect(t[0], OK, "free a");
	expect(t[0], OK, "linger 300");
	expect(t[1], OK, "linger 300");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 300 * MIB);
	assert_int_equal(tenant_end(t[0]), 0);
	assert_int_equal(tenant_end(t[1]), 0);
}

static void what_a_pool_keeps_and_the_dead_held_is_had_back_first(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t[2];

	hold(slice, OOM_KILLER, t);
	expect(t[0], OK, "pool p");
	expect(t[0], OK, "threshold p 4g");
	expect(t[0], OK, "async b 512m");
	expect(t[0], OK, "freeasync b");
	expect(t[0], OK, "sync");
	tenant_kill(t[1], SIGKILL);
	slice_change(slice, "1200m", NULL);
	expect(t[0], OK, LINGER);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 600 * MIB);
	assert_int_equal(tenant_end(t[0]), 0);
}

/* Not about pressure itself: what vgpu doctor tells of it. */
static void whether_nvml_has_a_figure_is_noted(void **state)
{
	struct slice *slice = slice_new(*state, "a", "1g", NULL);
	struct tenant *t = tenant_new(slice);
	struct snapshot *snapshot = malloc(sizeof(*snapshot));

	assert_non_null(snapshot);
	expect(t, OUT_OF_MEMORY, "alloc a 1g");
	assert_int_equal(snapshot_read(slice->region, snapshot), 0);
	assert_int_equal(snapshot->process_count, 1);
	assert_int_equal(snapshot->processes[0].notes, REGION_NOTE_NVML);
	assert_int_equal(snapshot->devices[0].refusal_count, 1);
	free(snapshot);
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(without_the_option_a_full_card_is_a_full_card),
		test_with_node(what_the_card_cannot_hold_is_held_by_the_host_and_charged),
		test_with_node(the_quota_holds_beyond_the_card_too),
		test_with_node(an_unlimited_slice_gets_what_the_card_has),
		test_with_node(a_quota_larger_than_the_card_is_shown),
		test_with_node(a_free_in_stream_order_waits_for_nobody_and_goes_with_the_stream),
		test_with_node(many_frees_in_stream_order_behind_work_wait_for_nobody),
		test_with_node(what_is_behind_long_work_keeps_no_other_stream_waiting),
		test_with_node(every_form_of_an_allocation_in_stream_order_is_placed),
		test_with_node(what_a_stream_frees_is_had_back_before_a_refusal),
		test_with_node(what_is_leaving_ends_with_its_context),
		test_with_node(what_a_stream_was_to_free_is_freed_after_the_streams_context),
		test_with_node(a_child_of_fork_knows_nothing_of_what_is_leaving),
		test_with_node(the_hosts_memory_is_not_shared_with_other_processes),
		test_with_node(a_device_that_cannot_says_so_once),
		test_with_node(a_switch_that_is_neither_on_nor_off_is_off_and_said),
		test_with_node(a_lowered_quota_kills_nobody_by_default),
		test_with_node(the_largest_of_the_slice_goes_and_no_other),
		test_with_node(what_a_process_shares_counts_for_who_goes),
		test_with_node(as_many_go_as_the_quota_asks_for),
		test_with_node(whoever_gives_back_in_time_stays),
		test_with_node(what_a_pool_keeps_and_the_dead_held_is_had_back_first),
		test_with_node(whether_nvml_has_a_figure_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
