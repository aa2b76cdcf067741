/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's watches and timers, which remove each other and themselves. */
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/looping.h"

#define MS 1000000ull

static struct loop *loop;
static struct loop_timer timers[4];
static struct loop_watch watches[2];
static char told[16];

static void tell(void *context)
{
	strcat(told, context);
}

static void tell_and_clear_others(void *context)
{
	tell(context);
	for (size_t i = 0; i < 4; i++)
		loop_timer_clear(loop, &timers[i]);
}

static void tell_and_set_again(void *context)
{
	tell(context);
	if (strlen(told) < 3)
		loop_timer_set(loop, &timers[0], clock_now_ns());
}

/* So much, and what comes soon after it. */
static void run_until_told(size_t length)
{
	uint64_t until_ns = clock_now_ns() + 30000 * MS;

	while (strlen(told) < length && clock_now_ns() < until_ns)
		looping_run(loop, 10);
	looping_run(loop, 50);
}

static void ready_and_remove_both(void *context, uint32_t events)
{
	tell(context);
	loop_watch_remove(loop, &watches[0]);
	loop_watch_remove(loop, &watches[1]);
}

static int setup(void **state)
{
	static char names[4][2] = {"a", "b", "c", "d"};

	told[0] = 0;
	for (size_t i = 0; i < 4; i++)
		timers[i] = (struct loop_timer){.due = tell, .context = names[i]};
	for (size_t i = 0; i < 2; i++)
		watches[i] =
			(struct loop_watch){.ready = ready_and_remove_both, .context = names[i]};
	return loop_new(&loop);
}

static int teardown(void **state)
{
	loop_free(loop);
	return 0;
}

static void timers_come_in_the_order_of_their_times(void **state)
{
	uint64_t now = clock_now_ns();

	loop_timer_set(loop, &timers[0], now + 30 * MS);
	loop_timer_set(loop, &timers[1], now + 10 * MS);
	loop_timer_set(loop, &timers[2], now + 20 * MS);
	loop_timer_set(loop, &timers[3], now + 10 * MS);
	loop_timer_set(loop, &timers[0], now + 5 * MS); /* another time */
	loop_timer_clear(loop, &timers[2]);
	loop_timer_clear(loop, &timers[2]);
	run_until_told(3);
	assert_string_equal(told, "abd");
}

static void a_timer_may_clear_the_others(void **state)
{
	timers[1].due = tell_and_clear_others;
	for (size_t i = 0; i < 4; i++)
		loop_timer_set(loop, &timers[i], clock_now_ns());
	run_until_told(2);
	assert_string_equal(told, "ab");
}

static void a_timer_may_set_itself(void **state)
{
	timers[0].due = tell_and_set_again;
	loop_timer_set(loop, &timers[0], 0);
	run_until_told(3);
	assert_string_equal(told, "aaa");
}

static void a_watch_that_is_removed_is_not_called(void **state)
{
	int fds[] = {eventfd(1, EFD_CLOEXEC), eventfd(1, EFD_CLOEXEC)};

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(loop_watch_add(loop, &watches[i], fds[i], EPOLLIN), 0);
	run_until_told(1);
	assert_int_equal(strlen(told), 1); /* both were ready, one was called */
	close(fds[0]);
	close(fds[1]);
}

static void *stop(void *context)
{
	loop_stop(loop);
	return NULL;
}

static void another_thread_stops_it(void **state)
{
	pthread_t thread;
	int result;

	pthread_create(&thread, NULL, stop, NULL);
	result = loop_run(loop, clock_now_ns() + 60000 * MS);
	pthread_join(thread, NULL);
	assert_int_equal(result, LOOP_E_STOPPED);
	assert_int_equal(loop_run(loop, UINT64_MAX), LOOP_E_STOPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			timers_come_in_the_order_of_their_times, setup, teardown),
		cmocka_unit_test_setup_teardown(a_timer_may_clear_the_others, setup, teardown),
		cmocka_unit_test_setup_teardown(a_timer_may_set_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_watch_that_is_removed_is_not_called, setup, teardown),
		cmocka_unit_test_setup_teardown(another_thread_stops_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
