/* SPDX-License-Identifier: Apache-2.0 */
/* test_still DRIVE LIBRARY: a virtual clock on which nobody can go on says so and fails, and one on which somebody works does not. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/clock/still.h"

#define WORK_S	3 /* more than CLOCK_STILL says */
#define CLAIMED 3 /* the slot that says so */

static char *self, *drive, *library;

/* Runs this program on a virtual clock, and returns its exit status and what was printed. */
static int run(const char *what, char *ret_text, size_t size)
{
	size_t length = 0;
	int ends[2], status;
	ssize_t more;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv(CLOCK_STILL, "1", 1);
		execl(drive, drive, library, self, what, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while ((more = read(ends[0], ret_text + length, size - 1 - length)) > 0)
		length += (size_t)more;
	close(ends[0]);
	ret_text[length] = '\0';
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void wait_for_nobody(void)
{
	int ends[2];
	char word;

	if (pipe(ends) == 0 && fork() >= 0)
		(void)!read(ends[0], &word, 1);
}

static void *sleep_once(void *unused)
{
	sleep(1);
	return NULL;
}

/* Of a thread that is said to begin, and never does. */
static void wait_for_record(void)
{
	int fd = open(getenv(CLOCK_PAGE), O_RDWR | O_CLOEXEC);
	struct clock_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_t thread;

	record_pass(&page->threads[CLAIMED], 0, owner_of(getpid(), 0));
	atomic_store(&page->used, CLAIMED + 1);
	pthread_create(&thread, NULL, sleep_once, NULL);
	pthread_join(thread, NULL);
}

static void work(void)
{
	struct timespec t, from;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &from);
	do
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	while (t.tv_sec <= from.tv_sec + WORK_S);
}

static void a_clock_on_which_all_wait_for_ever_says_so_and_ends_them(void **state)
{
	char text[4096];

	assert_int_not_equal(run("wait", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "it stands still"));
	assert_non_null(strstr(text, "slot 1: "));
}

static void a_clock_that_a_record_holds_says_which(void **state)
{
	char text[4096];

	assert_int_not_equal(run("record", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\n* slot 3: "));
	assert_non_null(strstr(text, ", sleeps until +1000000 us; "));
}

static void a_clock_on_which_a_thread_works_goes_on(void **state)
{
	char text[4096];

	assert_int_equal(run("work", text, sizeof(text)), 0);
	assert_null(strstr(text, "it stands still"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_on_which_all_wait_for_ever_says_so_and_ends_them),
		cmocka_unit_test(a_clock_that_a_record_holds_says_which),
		cmocka_unit_test(a_clock_on_which_a_thread_works_goes_on),
	};

	if (argc == 2) {
		(strcmp(argv[1], "wait") == 0		 ? wait_for_nobody
			: strcmp(argv[1], "record") == 0 ? wait_for_record
							 : work)();
		return 0;
	}
	if (argc != 3)
		return 2;
	self = argv[0];
	drive = argv[1];
	library = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
