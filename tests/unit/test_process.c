/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process, whatever it calls itself and however far it has gone. */
#include "region/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

/* Field 22 of our own stat, by another way than the product's. */
static uint64_t own_start_time(void)
{
	unsigned long long start = 0;
	char text[1024], *at;
	FILE *file = fopen("/proc/self/stat", "re");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	at = strrchr(text, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at + 2,
				 "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				 "%*d %*d %*d %llu",
				 &start),
		1);
	return start;
}

static void this_process_is_itself(void **state)
{
	struct process_identity me, seen;
	struct stat namespace;

	process_identify_self(&me);
	assert_int_equal(me.pid, getpid());
	assert_true(me.start_time > 0);
	assert_int_equal(me.start_time, own_start_time());
	assert_string_equal(me.command, "test_process");
	assert_false(me.is_gone);
	assert_false(me.is_leaving);
	assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
	assert_int_equal(me.pid_namespace, namespace.st_ino);
	assert_int_equal(process_own_namespace(), namespace.st_ino);
	assert_int_equal(process_identify(getpid(), &seen), 0);
	assert_int_equal(seen.start_time, me.start_time);
	assert_int_equal(seen.pid_namespace, 0);
}

static void a_name_full_of_brackets_and_spaces_misleads_nobody(void **state)
{
	static const char *const hostile[] = {") Z 1 1 1 1 (", "a) b (c 1 2 3", "((((((((((((((",
		"))))))))))))))", " ", "\n) X 0"};
	uint64_t start = own_start_time();
	struct process_identity me;

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		prctl(PR_SET_NAME, hostile[i]);
		process_identify_self(&me);
		assert_int_equal(me.start_time, start);
		assert_string_equal(me.command, hostile[i]);
		assert_false(me.is_gone);
	}
	prctl(PR_SET_NAME, "test_process");
}

static void a_process_that_is_not_there_is_not_found(void **state)
{
	static const pid_t absent[] = {0, -1, INT32_MAX, INT32_MIN};
	struct process_identity seen, before;

	memset(&seen, 0x5a, sizeof(seen));
	before = seen;
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		assert_int_equal(process_identify(absent[i], &seen), -ESRCH);
	assert_memory_equal(&seen, &before, sizeof(seen));
}

static int wait_for_word(int fd, void *argument)
{
	child_say(fd, 1);
	child_hear(fd);
	return 0;
}

static void a_stopped_process_is_neither_gone_nor_leaving(void **state)
{
	struct child c = child_start(wait_for_word, NULL);
	struct process_identity seen;
	int status;

	child_hear(c.fd);
	kill(c.pid, SIGSTOP);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_false(seen.is_gone);
	assert_false(seen.is_leaving);
	child_kill(&c);
}

static void a_zombie_is_gone(void **state)
{
	struct child c = child_start(wait_for_word, NULL);
	struct process_identity seen;
	siginfo_t info;

	child_hear(c.fd);
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_true(seen.is_gone);
	assert_true(seen.is_leaving);
	child_wait(&c);
	assert_int_equal(process_identify(c.pid, &seen), -ESRCH);
}

static void *thread_that_stays(void *argument)
{
	int fd = *(int *)argument;

	child_say(fd, 1);
	child_hear(fd);
	_exit(0);
}

static int leave_a_thread_behind(int fd, void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_that_stays, &fd) != 0)
		return 1;
	/* only the first thread goes, without the C library's knowledge */
	syscall(SYS_exit, 0);
	return 1;
}

static void a_process_whose_first_thread_ended_is_not_gone(void **state)
{
	struct child c = child_start(leave_a_thread_behind, NULL);
	struct process_identity seen;
	char path[64], text[1024] = "";

	assert_int_equal(child_hear(c.fd), 1);
	snprintf(path, sizeof(path), "/proc/%d/stat", c.pid);
	/* until the kernel has written the first thread off */
	while (!strstr(text, ") Z ")) {
		FILE *file = fopen(path, "re");

		assert_non_null(file);
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_false(seen.is_gone);
	child_kill(&c);
}

static void the_first_namespace_has_a_number_of_its_own(void **state)
{
	struct process_identity id = {.pid_namespace = 4026531836u};

	assert_true(process_is_in_first_namespace(&id));
	id.pid_namespace = 4026531837u;
	assert_false(process_is_in_first_namespace(&id));
	id.pid_namespace = 0;
	assert_false(process_is_in_first_namespace(&id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_process_is_itself),
		cmocka_unit_test(a_name_full_of_brackets_and_spaces_misleads_nobody),
		cmocka_unit_test(a_process_that_is_not_there_is_not_found),
		cmocka_unit_test(a_stopped_process_is_neither_gone_nor_leaving),
		cmocka_unit_test(a_zombie_is_gone),
		cmocka_unit_test(a_process_whose_first_thread_ended_is_not_gone),
		cmocka_unit_test(the_first_namespace_has_a_number_of_its_own),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
