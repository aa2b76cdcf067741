/* SPDX-License-Identifier: Apache-2.0 */
/* SIGUSR2 suspends a process and SIGUSR1 resumes it, where the program has not claimed them. */
#include "tests/tenant/tenant.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/layout.h"

#define STATUS_WAIT_NS UINT64_C(10000000000)
#define STILL_MS       200 /* work that is let through is done long before */

static void set_kernel(struct node *node, uint64_t ns)
{
	assert_int_equal(inject_set_kernel(node->machine, "work", ns), 0);
}

static int32_t number_in(const struct slice *slice, unsigned slot, size_t at)
{
	int fd = open(slice->region, O_RDONLY | O_CLOEXEC);
	int32_t number;
	ssize_t got;

	assert_true(fd >= 0);
	got = pread(fd, &number, sizeof(number),
		(off_t)(offsetof(struct hami_region, slots) + slot * sizeof(struct hami_slot) +
			at));
	close(fd);
	assert_int_equal(got, sizeof(number));
	return number;
}

/* What HAMi's monitor reads of the process. */
static int status_of(const struct slice *slice, pid_t pid)
{
	for (unsigned slot = 0; slot < NODE_TENANTS; slot++)
		if (number_in(slice, slot, offsetof(struct hami_slot, pid)) == pid)
			return number_in(slice, slot, offsetof(struct hami_slot, status));
	return -1;
}

static void wait_for_status(const struct slice *slice, pid_t pid, int want)
{
	uint64_t deadline = clock_now_ns() + STATUS_WAIT_NS;

	while (status_of(slice, pid) != want && clock_now_ns() < deadline)
		usleep(1000);
	assert_int_equal(status_of(slice, pid), want);
}

static void expect_still(struct tenant *t)
{
	struct pollfd from = {.fd = t->from_fd, .events = POLLIN};

	assert_int_equal(poll(&from, 1, STILL_MS), 0);
}

/* Its next work does not begin before it is resumed. */
static void expect_suspended_by(struct tenant *t, int signal)
{
	assert_int_equal(kill(t->pid, signal), 0);
	tenant_tell(t, "work work");
	wait_for_status(t->slice, t->pid, HAMI_SUSPENDED);
	expect_still(t);
}

static void expect_resumed(struct tenant *t)
{
	assert_int_equal(kill(t->pid, SIGUSR1), 0);
	assert_int_equal(tenant_answer(t), OK);
	wait_for_status(t->slice, t->pid, HAMI_RUNNING);
}

static void expect_is(struct tenant *t, int signal, const char *what)
{
	char is[32];

	expect(t, OK, "signal %d", signal);
	snprintf(is, sizeof(is), " is=%s ", what);
	if (!strstr(t->answer, is))
		print_message("signal %d:%s\n", signal, t->answer);
	assert_non_null(strstr(t->answer, is));
}

static void an_unclaimed_signal_suspends_and_another_resumes(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	set_kernel(*state, 1000);
	for (int i = 0; i < 3; i++) {
		expect(t, OK, "work work");
		expect_suspended_by(t, SIGUSR2);
		expect_resumed(t);
	}
	assert_int_equal(kill(t->pid, SIGUSR1), 0);
	expect(t, OK, "work work");
	assert_int_equal(tenant_end(t), 0);
}

static void the_other_processes_of_the_slice_go_on(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice), *other = tenant_new(slice);

	set_kernel(*state, 1000);
	expect_suspended_by(t, SIGUSR2);
	expect(other, OK, "work work");
	assert_int_equal(status_of(slice, other->pid), HAMI_RUNNING);
	expect_resumed(t);
	assert_int_equal(tenant_end(other), 0);
	assert_int_equal(tenant_end(t), 0);
}

static void a_wait_for_the_budget_becomes_one_for_the_signal(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", "CUDA_DEVICE_SM_LIMIT=10",
		"GPU_CORE_UTILIZATION_POLICY=force", NULL);

	set_kernel(node, 200000000);
	expect(t, OK, "primary 0");
	expect(t, OK, "work work");
	tenant_tell(t, "work work"); /* which has to wait for 1.8 s */
	expect_still(t);
	assert_int_equal(kill(t->pid, SIGUSR2), 0);
	wait_for_status(slice, t->pid, HAMI_SUSPENDED);
	expect_resumed(t);
	assert_int_equal(tenant_end(t), 0);
}

static void what_the_program_has_claimed_stays_its_own(void **state)
{
	static const char *const claims[][2] = {{"ignore", "ignored"}, {"own", "own"}};
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "4g", NULL);

	set_kernel(node, 1000);
	for (int i = 0; i < 2; i++) {
		struct tenant *t = tenant_start(node, slice, "linked", NULL);

		expect(t, OK, "signal %d %s", SIGUSR2, claims[i][0]);
		expect(t, OK, "primary 0");
		expect_is(t, SIGUSR2, claims[i][1]);
		expect_is(t, SIGUSR1, "other"); /* each by itself */
		assert_int_equal(kill(t->pid, SIGUSR2), 0);
		expect(t, OK, "work work");
		expect_is(t, SIGUSR2, claims[i][1]);
		assert_int_equal(tenant_number(t, "caught"), i);
		assert_int_equal(tenant_end(t), 0);
	}
}

static void a_program_that_comes_later_has_its_way(void **state)
{
	struct slice *slice = slice_new(*state, "a", "4g", NULL);
	struct tenant *t = tenant_new(slice);

	set_kernel(*state, 1000);
	expect_is(t, SIGUSR2, "other");
	expect(t, OK, "signal %d own", SIGUSR2);
	assert_int_equal(kill(t->pid, SIGUSR2), 0);
	expect(t, OK, "work work");
	expect_is(t, SIGUSR2, "own");
	assert_int_equal(tenant_number(t, "caught"), 1);
	expect(t, OK, "signal %d default", SIGUSR2);
	expect(t, OK, "newctx c 0");
	expect_is(t, SIGUSR2, "default");
	assert_int_equal(kill(t->pid, SIGUSR2), 0);
	assert_int_equal(WTERMSIG(tenant_end(t)), SIGUSR2);
}

static void before_a_context_and_outside_of_a_slice_nothing_is_taken(void **state)
{
	struct node *node = *state;
	struct slice *slice = slice_new(node, "a", "2g", NULL);
	struct tenant *t = tenant_start(node, slice, "linked", NULL);
	struct tenant *outside = tenant_start(node, NULL, "linked", NULL);

	expect(t, OK, "init");
	expect_is(t, SIGUSR1, "default");
	expect_is(t, SIGUSR2, "default");
	expect(outside, OK, "primary 0");
	expect_is(outside, SIGUSR1, "default");
	expect_is(outside, SIGUSR2, "default");
	assert_int_equal(WTERMSIG(tenant_kill(outside, SIGUSR2)), SIGUSR2);
	assert_int_equal(tenant_end(t), 0);
}

static void a_child_has_the_handler_and_a_new_program_has_not(void **state)
{
	struct slice *slice = slice_new(*state, "a", "2g", NULL);
	struct tenant *t = tenant_new(slice);

	expect(t, OK, "fork");
	expect_is(t, SIGUSR1, "other");
	expect_is(t, SIGUSR2, "other");
	expect(t, OK, "exec");
	expect_is(t, SIGUSR1, "default");
	expect_is(t, SIGUSR2, "default");
	expect(t, 0, "exit 0");
	assert_int_equal(tenant_end(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_with_node(an_unclaimed_signal_suspends_and_another_resumes),
		test_with_node(the_other_processes_of_the_slice_go_on),
		test_with_node(a_wait_for_the_budget_becomes_one_for_the_signal),
		test_with_node(what_the_program_has_claimed_stays_its_own),
		test_with_node(a_program_that_comes_later_has_its_way),
		test_with_node(before_a_context_and_outside_of_a_slice_nothing_is_taken),
		test_with_node(a_child_has_the_handler_and_a_new_program_has_not),
	};

	return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
