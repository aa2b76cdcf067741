/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that come, fork, exec, stop and die, in whatever way: the books stay right. */
#include "gpu/abi/cuda.h"
#include "tests/tenant/meter.h"
#include "tests/tenant/tenant.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/process.h"

/* What a call may cost a process whose peer is stopped. */
#define PEER_US 50000

static void wait_for_books(const struct slice *slice, uint64_t bytes)
{
	uint64_t deadline_ns = clock_now_ns() + UINT64_C(10000000000);

	while (slice_books(slice, 0) != bytes && clock_now_ns() < deadline_ns)
		usleep(1000);
	assert_int_equal(slice_books(slice, 0), bytes);
}

static void await_end(pid_t pid)
{
	uint64_t deadline_ns = clock_now_ns() + UINT64_C(20000000000);
	struct process_identity seen;

	while (process_identify(pid, &seen) == 0 && !seen.is_gone && clock_now_ns() < deadline_ns)
		usleep(1000);
}

/* All of the quota of 2 GiB but two contexts is there for t. */
static void expect_all_for(struct tenant *t, uint64_t contexts)
{
	expect(t, OUT_OF_MEMORY, "fill 2m");
	assert_int_equal(
		tenant_number(t, "count"), (2 * GIB - contexts * CONTEXT_BYTES) / (2 * MIB));
	expect(t, OK, "drop");
}

static void end_by(struct node *node, const char *how, int want_status)
{
	struct slice *slice = slice_new(node, how[0] == '_' ? "leave" : how, "2g", NULL);
	struct tenant *survivor = tenant_new(slice), *t = tenant_new(slice);
	int status;

	expect(t, OK, "alloc a 700m");
	expect(t, OK, "async b 100m");
	expect(t, OK, "vmm c 32m");
	expect(survivor, OUT_OF_MEMORY, "alloc a 500m");
	if (strcmp(how, "kill") == 0) {
		status = tenant_kill(t, SIGKILL);
	} else if (strcmp(how, "eof") == 0) {
		status = tenant_end(t);
	} else {
		tenant_tell(t, strcmp(how, "crash") == 0 ? "%s" : "%s 3", how);
		status = tenant_end(t);
	}
	assert_int_equal(status, want_status);
	expect_all_for(survivor, 1);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(survivor), 0);
	assert_int_equal(slice_agreed(slice, 0), 0);
}

static void the_memory_of_a_process_that_ends_is_there_for_the_others(void **state)
{
	end_by(*state, "eof", 0);
	end_by(*state, "exit", 3 << 8);
	end_by(*state, "_exit", 3 << 8);
	end_by(*state, "kill", SIGKILL);
	end_by(*state, "crash", SIGSEGV);
}

static void a_process_killed_inside_the_driver_leaves_no_charge(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *survivor = tenant_new(slice), *t;
	struct inject_rule slow = {
		.symbol = "cuMemAlloc_v2", .tag = "slow", .delay_ns = UINT64_C(30000000000)};

	assert_true(inject_add_rule(node->machine, &slow) >= 0);
	t = tenant_start(node, slice, "linked", "VGPU_SIM_TAG=slow", NULL);
	expect(t, OK, "primary 0");
	tenant_tell(t, "alloc a 512m");
	wait_for_books(slice, 2 * CONTEXT_BYTES + 512 * MIB);
	tenant_kill(t, SIGKILL);
	expect_all_for(survivor, 1);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
}

static void many_processes_killed_at_any_moment_leave_no_charge(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *survivor = tenant_new(slice), *t;

	for (unsigned i = 0; i < 20; i++) {
		t = tenant_new(slice);
		tenant_tell(t, "threads 4 100000 3m");
		usleep(500 * i);
		tenant_kill(t, SIGKILL);
		expect_all_for(survivor, 1);
	}
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
}

static void expect_quick(struct tenant *t, int want, const char *what)
{
	expect(t, want, "time %s", what);
	if (tenant_number(t, "us") > PEER_US)
		print_message(
			"%s took %llu us\n", what, (unsigned long long)tenant_number(t, "us"));
	assert_true(tenant_number(t, "us") <= PEER_US);
}

static void a_stopped_process_stops_nobody_else(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice), *stopped, *late;
	struct inject_rule slow = {
		.symbol = "cuMemAlloc_v2", .tag = "slow", .delay_ns = UINT64_C(500000000)};

	assert_true(inject_add_rule(node->machine, &slow) >= 0);
	stopped = tenant_start(node, slice, "linked", "VGPU_SIM_TAG=slow", NULL);
	expect(stopped, OK, "primary 0");
	tenant_tell(stopped, "alloc a 256m");
	wait_for_books(slice, 2 * CONTEXT_BYTES + 256 * MIB);
	tenant_kill(stopped, SIGSTOP);
	expect_quick(t, OK, "alloc a 64m");
	expect_quick(t, OUT_OF_MEMORY, "alloc b 1g");
	expect_quick(t, OUT_OF_MEMORY, "async b 1g");
	expect_quick(t, OK, "async b 32m");
	expect_quick(t, OK, "freeasync b");
	expect_quick(t, OK, "sync");
	expect_quick(t, OK, "info");
	expect_quick(t, OK, "nvml 0");
	expect_quick(t, OK, "free a");
	expect_quick(t, OK, "alloc a 300m");
	expect_quick(t, OUT_OF_MEMORY, "newctx c 0");
	late = tenant_start(node, slice, "linked", NULL);
	expect_quick(late, OUT_OF_MEMORY, "primary 0");
	expect_quick(late, OK, "nvml 0");
	tenant_kill(stopped, SIGCONT);
	assert_int_equal(tenant_answer(stopped), OK);
	expect(stopped, OK, "free a");
	expect(t, OK, "free a");
	assert_int_equal(slice_books(slice, 0), 2 * CONTEXT_BYTES);
}

static void a_child_of_a_process_without_cuda_counts_for_itself(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OK, "fork");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 100m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 100 * MIB);
	expect(t, 5 << 8, "exit 5");
	assert_int_equal(slice_agreed(slice, 0), 0);
	expect(t, OK, "primary 0");
	expect_all_for(t, 1);
	assert_int_equal(tenant_end(t), 0);
}

static void parent_and_child_share_the_quota(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *other = tenant_new(slice);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	/* the quota is known before the fork, the device is not */
	expect(t, OK, "init");
	expect(t, OK, "count");
	expect(t, OK, "exec");
	expect(t, OK, "fork");
	expect(t, OK, "primary 0");
	expect(t, OUT_OF_MEMORY, "fill 2m");
	assert_int_equal(tenant_number(t, "count"), (2 * GIB - 2 * CONTEXT_BYTES) / (2 * MIB));
	expect(other, OUT_OF_MEMORY, "alloc a 1");
	expect(t, 0, "_exit 0");
	expect_all_for(other, 1);
	assert_int_equal(tenant_end(t), 0);
}

static void a_child_of_a_process_with_cuda_does_not_touch_its_parents_account(void **state)
{
	static const char *const tries[] = {"alloc b 64m", "free a", "pitch b 10 10",
		"managed b 1m", "async b 1m", "freeasync s", "frompool b p 1m", "trim p 0",
		"endpool p", "newpool q", "create b 64m", "retain b v", "unmap v 0 64m",
		"release h", "map v 0 64m h", "info", "totalmem 0", "sync", "streamsync",
		"newctx c 0", "unprimary 0", "reset 0", "primary 0", "nvml 0", "nvml2 0", "init"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t before;

	expect(t, OK, "alloc a 256m");
	expect(t, OK, "async s 64m");
	expect(t, OK, "newpool p");
	expect(t, OK, "create h 64m");
	expect(t, OK, "vmm v 64m");
	before = slice_agreed(slice, 0);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		expect(t, OK, "fork");
		/* whatever the driver answers in such a child, it lives and the books are its parent's */
		assert_true(tenant_ask(t, "%s", tries[i]) >= 0);
		expect(t, 0, i % 2 ? "exit 0" : "_exit 0");
		assert_int_equal(slice_agreed(slice, 0), before);
	}
	expect(t, OK, "fork");
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		assert_true(tenant_ask(t, "%s", tries[i]) >= 0);
	expect(t, OK, "exec");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc b 64m");
	assert_int_equal(slice_agreed(slice, 0), before + CONTEXT_BYTES + 64 * MIB);
	expect(t, 0, "exit 0");
	expect(t, OK, "free a");
	expect(t, OK, "free s");
	expect(t, OK, "release h");
	expect(t, OK, "unmap v 0 64m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void a_child_of_a_bare_clone_is_refused_as_one_of_fork_is(void **state)
{
	static const char *const tries[] = {"alloc b 64m", "create b 64m", "managed b 1m", "info",
		"primary 0", "newctx c 0", "sync", "init"};
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);
	uint64_t before;

	expect(t, OK, "alloc a 256m");
	before = slice_agreed(slice, 0);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int of_fork;

		expect(t, OK, "fork");
		of_fork = tenant_ask(t, "%s", tries[i]);
		expect(t, 0, "_exit 0");
		expect(t, OK, "clone");
		assert_int_equal(tenant_ask(t, "%s", tries[i]), of_fork);
		expect(t, OK, "clone");
		assert_int_equal(tenant_ask(t, "%s", tries[i]), of_fork);
		expect(t, OK, "nvml 0");
		assert_int_equal(tenant_number(t, "total"), 4 * GIB);
		expect(t, 0, "_exit 0");
		expect(t, 0, "_exit 0");
		assert_int_equal(slice_agreed(slice, 0), before);
	}
	expect(t, OK, "clone");
	expect(t, OK, "exec");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc b 64m");
	assert_int_equal(slice_agreed(slice, 0), before + CONTEXT_BYTES + 64 * MIB);
	expect(t, 0, "exit 0");
	expect(t, OK, "free a");
	assert_int_equal(tenant_end(t), 0);
}

/* Nothing would meter it: it would be its parent's work in the device's queue, and nobody's in the books. */
static void work_of_a_child_of_a_bare_clone_is_refused_where_time_is_limited(void **state)
{
	struct slice *slice = meter_slice(*state, "a", "", "cores 30");
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "module m");
	for (int i = 0; i < 3; i++)
		expect(t, OK, "launch m");
	for (int i = 0; i < 3; i++) {
		expect(t, OK, "clone");
		expect(t, CUDA_ERROR_NOT_INITIALIZED, "launch m");
		expect(t, CUDA_ERROR_NOT_INITIALIZED, "launch m");
		expect(t, 0, "_exit 0");
		expect(t, OK, "launch m");
	}
	assert_int_equal(tenant_end(t), 0);
}

/* how: "fork" or "clone" */
static void expect_child_to_begin(struct tenant *t, struct slice *slice, const char *how)
{
	expect(t, OK, "%s", how);
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 100m");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + 100 * MIB);
	expect(t, 0, "_exit 0");
}

static void a_child_of_a_process_without_cuda_begins_it_after_a_bare_clone_too(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL);

	expect(t, OK, "nvml 0");
	expect_child_to_begin(t, slice, "clone");
	expect(t, OK, "primary 0");
	expect_all_for(t, 1);
	assert_int_equal(tenant_end(t), 0);
}

static void a_child_may_begin_where_its_parent_was_refused_to(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", NULL);
	struct inject_rule refusal = {.symbol = "cuInit", .tag = "*", .result = 999};

	assert_true(inject_add_rule(node->machine, &refusal) >= 0);
	expect(t, 999, "init");
	inject_clear_rules(node->machine);
	expect(t, OK, "nvml 0");
	expect_child_to_begin(t, slice, "fork");
	expect_child_to_begin(t, slice, "clone");
	expect(t, OK, "primary 0");
	expect_all_for(t, 1);
	assert_int_equal(tenant_end(t), 0);
}

static void the_parent_dies_and_the_child_lives_on(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL), *other;

	expect(t, OK, "fork");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 1g");
	kill(t->pid, SIGKILL);
	other = tenant_start(*state, slice, "linked", NULL);
	expect(other, OUT_OF_MEMORY, "primary 0");
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + GIB);
	expect(t, OK, "free a");
	expect(other, OK, "primary 0");
	tenant_tell(t, "exit 0");
	tenant_end(t);
	expect_all_for(other, 1);
}

static void a_child_of_a_process_that_asked_nvml_alone_counts_for_itself(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_start(*state, slice, "linked", NULL), *other;
	pid_t child;

	/* frameworks do this before they fork their workers: the parent is of the slice already */
	expect(t, OK, "nvml 0");
	expect(t, OK, "fork");
	child = (pid_t)tenant_number(t, "pid");
	expect(t, OK, "primary 0");
	expect(t, OK, "alloc a 1g");
	expect(t, OK, "nvml 0");
	assert_int_equal(tenant_number(t, "used"), CONTEXT_BYTES + GIB);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES + GIB);
	other = tenant_start(*state, slice, "linked", NULL);
	expect(other, OUT_OF_MEMORY, "primary 0");
	/* the child dies, its parent lives and holds nothing */
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(tenant_answer(t), SIGKILL);
	expect(other, OK, "primary 0");
	expect_all_for(other, 1);
	expect(t, OK, "primary 0");
	expect_all_for(other, 2);
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES);
}

static void what_a_parent_held_is_given_back_when_its_child_has_ended_too(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice), *other = tenant_new(slice);
	pid_t child;

	expect(t, OK, "alloc a 800m");
	expect(t, OK, "fork");
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	expect(other, OUT_OF_MEMORY, "alloc b 800m");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 800 * MIB);
	expect(t, OK, "pid");
	child = (pid_t)tenant_number(t, "pid");
	tenant_tell(t, "_exit 0");
	tenant_end(t);
	await_end(child); /* nobody waits for it, as its parent is gone */
	expect_all_for(other, 1);
}

static void exec_gives_all_back_and_begins_anew(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	for (int i = 0; i < 5; i++) {
		expect(t, OK, "alloc a 1g");
		expect(t, OK, "exec");
		expect(t, OK, "primary 0");
		expect(t, OK, "alloc a 1g");
		expect(t, OK, "free a");
	}
	expect_all_for(t, 1);
	assert_int_equal(slice_agreed(slice, 0), CONTEXT_BYTES);
	assert_int_equal(tenant_end(t), 0);
}

static void processes_of_other_pid_namespaces_share_the_books(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *outside, *one, *two;

	if (geteuid() != 0) {
		print_message("skipped: needs root to make PID namespaces\n");
		skip();
	}
	node->is_in_namespace = true;
	one = tenant_start(node, slice, "linked", NULL);
	two = tenant_start(node, slice, "linked", NULL);
	node->is_in_namespace = false;
	if (tenant_ask(one, "pid") < 0) {
		print_message("skipped: no PID namespaces here\n");
		skip();
	}
	assert_int_equal(tenant_number(one, "pid"), 1);
	expect(two, OK, "pid");
	assert_int_equal(tenant_number(two, "pid"), 1);
	expect(one, OK, "primary 0");
	expect(two, OK, "primary 0");
	expect(one, OK, "alloc a 400m");
	expect(two, OK, "alloc a 500m");
	expect(two, OUT_OF_MEMORY, "alloc b 200m");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 900 * MIB);
	tenant_kill(one, SIGKILL);
	/* its end is only known to us by its pipe; the kernel may still be at it */
	wait_for_books(slice, CONTEXT_BYTES + 500 * MIB);
	expect(two, OK, "alloc b 900m");
	expect(two, OK, "free b");
	outside = tenant_new(slice);
	expect(outside, OK, "alloc a 300m");
	expect(two, OUT_OF_MEMORY, "alloc b 500m");
	assert_int_equal(slice_agreed(slice, 0), 2 * CONTEXT_BYTES + 800 * MIB);
	tenant_kill(outside, SIGKILL);
	expect(two, OK, "free a");
	expect_all_for(two, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(the_memory_of_a_process_that_ends_is_there_for_the_others),
		test_with_node(a_process_killed_inside_the_driver_leaves_no_charge),
		test_with_node(many_processes_killed_at_any_moment_leave_no_charge),
		test_with_node(a_stopped_process_stops_nobody_else),
		test_with_node(a_child_of_a_process_without_cuda_counts_for_itself),
		test_with_node(parent_and_child_share_the_quota),
		test_with_node(a_child_of_a_process_with_cuda_does_not_touch_its_parents_account),
		test_with_node(a_child_of_a_bare_clone_is_refused_as_one_of_fork_is),
		test_with_node(work_of_a_child_of_a_bare_clone_is_refused_where_time_is_limited),
		test_with_node(a_child_of_a_process_without_cuda_begins_it_after_a_bare_clone_too),
		test_with_node(a_child_may_begin_where_its_parent_was_refused_to),
		test_with_node(the_parent_dies_and_the_child_lives_on),
		test_with_node(a_child_of_a_process_that_asked_nvml_alone_counts_for_itself),
		test_with_node(what_a_parent_held_is_given_back_when_its_child_has_ended_too),
		test_with_node(exec_gives_all_back_and_begins_anew),
		test_with_node(processes_of_other_pid_namespaces_share_the_books),
	};

	return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
