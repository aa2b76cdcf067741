/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own thread, with functions of the C library's and of ThreadSanitizer's that are the test's. */
#include "tenant/driver/own_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tenant/driver/symbols.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

#define MS     UINT64_C(1000000)
#define TRIES  100
#define WAIT_S 20

typedef void fn(void);

static bool is_refused;
static unsigned created;
static _Atomic unsigned ignored, heeded, looks, looks_heeded;

static int create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
	created++;
	return is_refused ? EAGAIN : pthread_create(thread, attr, run, argument);
}

static void ignore_begin(const char *file, int line)
{
	ignored++;
}

static void ignore_end(const char *file, int line)
{
	heeded++;
}

static void *find(void *handle, const char *name)
{
	static const struct {
		const char *name;
		fn *fn;
	} known[] = {
		{"pthread_create", (fn *)create},
		{"pthread_detach", (fn *)pthread_detach},
		{"AnnotateIgnoreReadsBegin", (fn *)ignore_begin},
		{"AnnotateIgnoreWritesBegin", (fn *)ignore_begin},
		{"AnnotateIgnoreReadsEnd", (fn *)ignore_end},
		{"AnnotateIgnoreWritesEnd", (fn *)ignore_end},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return (void *)known[i].fn;
	return NULL;
}

struct libc_symbols symbols_found = {.dlsym = find};
_Atomic bool symbols_are_found = true;

bool symbols_find_libc(void)
{
	return true;
}

static bool look(void)
{
	looks++;
	looks_heeded += ignored != 2 || heeded != 0;
	return false;
}

static void give_work(void)
{
	own_thread_note_work();
	own_thread_begin();
}

static void after_a_failure_it_rests(void **state)
{
	uint64_t start_ns = clock_now_ns();

	own_thread_set(look);
	is_refused = true;
	for (unsigned i = 0; i < TRIES; i++)
		give_work();
	assert_in_range(created, 1, 1 + (clock_now_ns() - start_ns) / (60 * MS));
	created = 0;
	nanosleep(&(struct timespec){.tv_nsec = 70 * MS}, NULL);
	give_work();
	assert_int_equal(created, 1);
}

static void a_sanitizer_does_not_heed_it_while_it_is_there(void **state)
{
	uint64_t end_ns = clock_now_ns() + WAIT_S * 1000 * MS;

	own_thread_reset_after_fork();
	own_thread_set(look);
	is_refused = false;
	created = 0;
	give_work();
	assert_int_equal(created, 1);
	while (heeded < 2 && clock_now_ns() < end_ns)
		nanosleep(&(struct timespec){.tv_nsec = 10 * MS}, NULL);
	assert_int_equal(ignored, 2);
	assert_int_equal(heeded, 2);
	assert_true(looks > 0);
	assert_int_equal(looks_heeded, 0);
}

/* Its work goes on. */
static bool look_at_work(void)
{
	return true;
}

static void *wait_for_word(void *fd)
{
	child_hear((int)(intptr_t)fd);
	return NULL;
}

/* What the parent had of memory is no leak of the child's. */
static void leave(void)
{
	_exit(0);
}

/* The first thread ends, and another one when it is told to. */
static int end_threads(int fd, void *argument)
{
	pthread_t other;

	(void)argument;
	if (atexit(leave) != 0)
		return 1;
	own_thread_reset_after_fork();
	own_thread_set(look_at_work);
	is_refused = false;
	give_work();
	if (pthread_create(&other, NULL, wait_for_word, (void *)(intptr_t)fd) != 0)
		return 1;
	child_say(fd, 0);
	pthread_exit(NULL);
}

static void with_the_programs_last_thread_it_ends(void **state)
{
	struct child c;
	uint64_t start_ns;
	int status;

#ifdef __SANITIZE_THREAD__
	skip(); /* its run time has a thread */
#endif
	fflush(stdout); /* the child ends by exit() */
	c = child_start(end_threads, NULL);
	assert_int_equal(child_hear(c.fd), 0);
	nanosleep(&(struct timespec){.tv_nsec = 300 * MS}, NULL);
	assert_int_equal(waitpid(c.pid, &status, WNOHANG), 0);
	start_ns = clock_now_ns();
	child_say(c.fd, 0);
	assert_int_equal(child_wait(&c), 0);
	assert_true(clock_now_ns() - start_ns < 900 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_failure_it_rests),
		cmocka_unit_test(with_the_programs_last_thread_it_ends),
		cmocka_unit_test(a_sanitizer_does_not_heed_it_while_it_is_there),
	};

	return cmocka_run_group_tests_name("own_thread", tests, NULL, NULL);
}
