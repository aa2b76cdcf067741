/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of other PID namespaces: found, and cheap to look for where they never were. */
#include "node/pids.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "region/process.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

/* Its child is the first process of a namespace of its own, whose number it says. */
static int begin_namespace(int fd, void *argument)
{
	struct process_identity seen;
	char link[64];
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0) {
		child_say(fd, 0);
		return 0;
	}
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(link, sizeof(link), "/proc/%d/ns/pid", (int)pid);
	child_say(fd, (uint64_t)pid);
	child_say(fd, process_read_namespace(link));
	child_say(fd, process_identify(pid, &seen) == 0 ? seen.start_time : 0);
	child_hear(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static void a_process_is_found_by_its_own_number(void **state)
{
	struct child c = child_start(begin_namespace, NULL);
	uint64_t pid = child_hear(c.fd), namespace, start_time;
	struct timespec pause = {.tv_nsec = 1000000};
	int found = 0;

	if (!pid) {
		child_wait(&c);
		print_message("skipped: no PID namespace to be had\n");
		skip();
	}
	namespace = child_hear(c.fd);
	start_time = child_hear(c.fd);
	/* The list may be older than the process, by as long as ten readings of it take. */
	for (int i = 0; i < 10000 && !found; i++) {
		found = pids_find(1, namespace, start_time);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(found, pid);
	assert_int_equal(pids_find(2, namespace, start_time), 0);
	assert_int_equal(pids_find(1, namespace + 1, start_time), 0);
	assert_int_equal(pids_find(1, namespace, start_time + 1000000), 0);
	child_wait(&c);
	/* What has ended since is not told, however old the list is. */
	assert_int_equal(pids_find(1, namespace, start_time), 0);
}

static uint64_t computed_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Of this thread, whatever else the processors do. */
static uint64_t time_of(unsigned count)
{
	uint64_t begin_ns = computed_ns();

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pids_find(1 + i, 42, 1 + i), 0);
	return computed_ns() - begin_ns;
}

/* A region may name so many that never were, and whoever lists it should not read /proc for each. */
static void a_thousand_that_never_were_cost_little_more_than_one(void **state)
{
	uint64_t one_ns = time_of(1);

	assert_in_range(time_of(1024), 0, 100 * one_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_that_never_were_cost_little_more_than_one),
		cmocka_unit_test(a_process_is_found_by_its_own_number),
	};

	return cmocka_run_group_tests_name("pids", tests, NULL, NULL);
}
