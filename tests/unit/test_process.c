/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process, whatever it calls itself and however far it has gone. */
#include "region/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/lingering.h"

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

static void the_peak_is_raised_and_seen_by_others(void **state)
{
	uint32_t before_mib, after_mib, mib;

	assert_int_equal(process_own_peak_mib(&before_mib), 0);
	assert_int_equal(process_raise_own_peak(&after_mib), 0);
	assert_true(before_mib > 0);
	/* more than programs reserve that are large by design: 1 TiB and more */
	assert_true(after_mib >= UINT32_C(16) << 20);
	assert_int_equal(process_own_peak_mib(&mib), 0);
	assert_int_equal(mib, after_mib);
	assert_int_equal(process_peak_mib(getpid()), after_mib);
}

/* 0 where the peak of a process that may have 40 GiB is raised by 32. */
static int raise_within_limit(int fd, void *argument)
{
	struct rlimit limit = {UINT64_C(40) << 30, UINT64_C(40) << 30};
	uint32_t mib;

	if (setrlimit(RLIMIT_AS, &limit) != 0 || process_raise_own_peak(&mib) != 0)
		return 1;
	return mib >= UINT32_C(32) << 10 ? 0 : 2;
}

static void a_peak_is_raised_as_far_as_the_process_may(void **state)
{
	struct child c = child_start(raise_within_limit, NULL);

	assert_int_equal(child_wait(&c), 0);
}

static int know_self_without_descriptors(int fd, void *argument)
{
	struct process_identity me = {.pid = 7};
	uint32_t mib = 7;
	struct rlimit none = {0, 4096};

	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 1;
	if (process_know_self(&me) != -EMFILE || me.pid != 7)
		return 2;
	if (process_own_peak_mib(&mib) != -EMFILE || process_raise_own_peak(&mib) != -EMFILE)
		return 3;
	return mib == 7 && !process_can_look() ? 0 : 4;
}

static void who_has_no_descriptor_does_not_know_itself(void **state)
{
	struct child c = child_start(know_self_without_descriptors, NULL);
	struct process_identity me;

	assert_int_equal(child_wait(&c), 0);
	assert_true(process_can_look());
	assert_int_equal(process_know_self(&me), 0);
	assert_int_equal(me.start_time, own_start_time());
	assert_int_equal(me.time_namespace, process_own_time_namespace());
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

static int end_first_thread(int fd, void *argument)
{
	lingering_end_first(fd);
	return 1;
}

static void a_process_whose_first_thread_ended_lives(void **state)
{
	struct child c = child_start(end_first_thread, NULL);
	pid_t thread = lingering_hear(&c);
	struct process_identity seen;
	char name[32], path[64];

	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_false(seen.is_gone);
	assert_false(seen.is_leaving);
	assert_int_equal(seen.pid, c.pid);
	/* What it has is to be seen by the thread that stays. */
	if (lingering_is_of_two(&c, thread))
		assert_int_equal(process_find_thread(c.pid), thread);
	assert_int_not_equal(process_find_thread(c.pid), c.pid);
	assert_int_equal(process_find_thread(getpid()), getpid());
	assert_true(process_peak_mib(c.pid) > 0);
	snprintf(path, sizeof(path), "/proc/%d/exe", process_find_thread(c.pid));
	assert_true(readlink(path, name, sizeof(name)) > 0);
	child_kill(&c);
}

static void a_process_is_leaving_when_its_last_thread_has_ended(void **state)
{
	struct child c = child_start(end_first_thread, NULL);
	pid_t thread = lingering_hear(&c);
	struct process_identity seen;

	if (!lingering_end_last(&c, thread)) {
		child_kill(&c);
		skip();
	}
	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_false(seen.is_gone);
	assert_true(seen.is_leaving);
	assert_int_equal(process_find_thread(c.pid), c.pid);
	assert_int_equal(lingering_let_go(&c, thread), 0);
	assert_int_equal(process_identify(c.pid, &seen), -ESRCH);
}

static void *thread_that_waits(void *argument)
{
	pthread_barrier_wait(argument);
	for (;;)
		pause();
	return NULL;
}

/* More than are listed at a time. */
static int leave_many_behind(int fd, void *argument)
{
	enum { THREADS = 100 };
	static pthread_barrier_t ready;
	pthread_t thread;

	if (pthread_barrier_init(&ready, NULL, THREADS + 1))
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, thread_that_waits, &ready) != 0)
			return 1;
	pthread_barrier_wait(&ready);
	child_say(fd, 1);
	syscall(SYS_exit, 0);
	return 1;
}

static void a_process_of_many_threads_lives_until_all_have_ended(void **state)
{
	struct child c = child_start(leave_many_behind, NULL);
	struct process_identity seen;
	siginfo_t info;

	assert_int_equal(child_hear(c.fd), 1);
	lingering_await(c.pid, c.pid);
	assert_int_equal(process_identify(c.pid, &seen), 0);
	assert_false(seen.is_leaving);
	kill(c.pid, SIGKILL);
	do
		assert_int_equal(process_identify(c.pid, &seen), 0);
	while (!seen.is_gone);
	assert_true(seen.is_leaving);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	child_wait(&c);
}

static pthread_attr_t detached;

/* Begins the next one and ends. */
static void *thread_that_hands_on(void *argument)
{
	pthread_t next;

	while (pthread_create(&next, &detached, thread_that_hands_on, argument) != 0)
		;
	return NULL;
}

static int hand_on(int fd, void *argument)
{
	if (pthread_attr_init(&detached) ||
		pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED))
		return 1;
	thread_that_hands_on(NULL);
	syscall(SYS_exit, 0);
	return 1;
}

static void a_process_whose_threads_relieve_each_other_lives(void **state)
{
	struct child c = child_start(hand_on, NULL);
	struct process_identity seen;

	lingering_await(c.pid, c.pid);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(process_identify(c.pid, &seen), 0);
		assert_false(seen.is_leaving);
	}
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
		cmocka_unit_test(the_peak_is_raised_and_seen_by_others),
		cmocka_unit_test(a_peak_is_raised_as_far_as_the_process_may),
		cmocka_unit_test(who_has_no_descriptor_does_not_know_itself),
		cmocka_unit_test(a_name_full_of_brackets_and_spaces_misleads_nobody),
		cmocka_unit_test(a_process_that_is_not_there_is_not_found),
		cmocka_unit_test(a_stopped_process_is_neither_gone_nor_leaving),
		cmocka_unit_test(a_zombie_is_gone),
		cmocka_unit_test(a_process_whose_first_thread_ended_lives),
		cmocka_unit_test(a_process_is_leaving_when_its_last_thread_has_ended),
		cmocka_unit_test(a_process_of_many_threads_lives_until_all_have_ended),
		cmocka_unit_test(a_process_whose_threads_relieve_each_other_lives),
		cmocka_unit_test(the_first_namespace_has_a_number_of_its_own),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
