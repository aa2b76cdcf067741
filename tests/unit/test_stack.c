/* SPDX-License-Identifier: Apache-2.0 */
/* How much room a thread has on its stack, in threads of several sizes and in the main one. */
#include "tenant/slice/stack.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)

struct question {
	size_t bytes;
	bool has_room;
};

static void *ask(void *argument)
{
	struct question *question = argument;

	question->has_room = stack_has_room(question->bytes);
	return NULL;
}

/* The answer in a thread whose stack is so large. */
static bool has_room_in(size_t stack_bytes, size_t bytes)
{
	struct question question = {.bytes = bytes};
	pthread_attr_t attributes;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
	assert_int_equal(pthread_create(&thread, &attributes, ask, &question), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_attr_destroy(&attributes), 0);
	return question.has_room;
}

static void a_thread_has_the_room_that_its_stack_leaves(void **state)
{
#ifdef __SANITIZE_THREAD__
	print_message(
		"skipped: the thread sanitizer gives threads other stacks than were asked for\n");
	skip();
#endif
	/* the smaller first: the C library gives a thread a larger one that is free */
	assert_false(has_room_in(64 * KIB, STACK_BUSY_BYTES));
	assert_true(has_room_in(64 * KIB, 16 * KIB));
	assert_false(has_room_in(64 * KIB, 64 * KIB));
	assert_false(has_room_in(160 * KIB, STACK_BUSY_BYTES));
	assert_true(has_room_in(256 * KIB, STACK_BUSY_BYTES));
	assert_true(has_room_in(512 * KIB, STACK_BUSY_BYTES));
}

static void the_main_thread_has_what_its_limit_leaves(void **state)
{
	struct rlimit before, small = {.rlim_cur = 256 * KIB};

	assert_true(stack_has_room(STACK_BUSY_BYTES));
	assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
	assert_false(stack_has_room(STACK_BUSY_BYTES));
	assert_true(stack_has_room(64 * KIB));
	assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_the_room_that_its_stack_leaves),
		cmocka_unit_test(the_main_thread_has_what_its_limit_leaves),
	};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
