/* SPDX-License-Identifier: Apache-2.0 */
/* A crowd that sleeps on a record: all who may read it may. What it costs the slice to wake them, and what others hear. */
#include "region/turn.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/turn_record.h"
#include "tests/unit/turn_scene.h"

#define CROWD	  200
#define ASLEEP_NS (5000 * MS)
#define LATE_NS	  (1000 * MS)

static pthread_t crowd[CROWD];
static _Atomic int ids[CROWD], woken;
static uint32_t news;

static void *sleep_on(void *arg)
{
	_Atomic int *id = arg;
	const struct timespec end = {.tv_sec = 5};

	*id = (int)syscall(SYS_gettid);
	if (syscall(SYS_futex, &a.own->face.news, FUTEX_WAIT, news, &end, NULL, 0) == 0)
		woken++;
	return NULL;
}

static bool is_asleep(int id)
{
	char path[64], text[256] = "";
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", id);
	file = fopen(path, "r");
	if (!file)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	/* "running", or the number of the call that it is in */
	return length > 0 && atoi(text) == SYS_futex;
}

static void begin_crowd(void)
{
	pthread_attr_t attributes;

	woken = 0;
	news = a.own->face.news;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (int i = 0; i < CROWD; i++) {
		ids[i] = 0;
		assert_int_equal(
			pthread_create(&crowd[i], &attributes, sleep_on, (void *)&ids[i]), 0);
	}
	pthread_attr_destroy(&attributes);
	for (int i = 0; i < CROWD; i++)
		while (!ids[i] || !is_asleep(ids[i]))
			usleep(100);
}

static void end_crowd(void)
{
	syscall(SYS_futex, &a.own->face.news, FUTEX_WAKE, CROWD, NULL, NULL, 0);
	for (int i = 0; i < CROWD; i++)
		pthread_join(crowd[i], NULL);
}

static void a_slice_wakes_no_more_than_there_are_others(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	begin_crowd();
	turn_release(&a, now);
	usleep(50000);
	assert_in_range(woken, 1, TURN_PEERS);
	woken = 0;
	assert_int_equal(hold(&a), TURN_HELD);
	turn_release(&a, now);
	usleep(50000);
	assert_in_range(woken, 1, 8);
	end_crowd();
	/* And as many as before when the crowd has gone. */
	now += 1001 * MS;
	assert_int_equal(hold(&a), TURN_HELD);
	begin_crowd();
	turn_release(&a, now);
	usleep(50000);
	assert_in_range(woken, 9, TURN_PEERS);
	end_crowd();
}

static uint64_t wait_for_a(uint64_t most_ns)
{
	uint64_t begun_ns = clock_now_ns();

	b.awaited = 0;
	assert_int_equal(turn_wait(&b, now + most_ns), 0);
	return clock_now_ns() - begun_ns;
}

static void *hand_over_soon(void *arg)
{
	usleep(20000);
	turn_release(&a, now);
	return arg;
}

/* Behind a crowd nobody is woken: who waits there looks again by himself. */
static void who_was_not_woken_looks_more_often(void **state)
{
	pthread_t holder;

	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	begin_crowd();
	assert_int_equal(pthread_create(&holder, NULL, hand_over_soon, NULL), 0);
	/* As long as the other thread may come late on a machine that has other work. */
	assert_in_range(wait_for_a(LATE_NS), LATE_NS - 10 * MS, ASLEEP_NS);
	pthread_join(holder, NULL);
	now += 6 * MS;
	turn_count_peers(&b, now);
	assert_in_range(wait_for_a(LATE_NS), 0, LATE_NS / 2);
	end_crowd();
	/* One that is woken waits for it again. Where the other thread was sooner nobody was: once more then. */
	for (int round = 0; round < 10 && b.peer_records[0].is_crowded; round++) {
		now += 6 * MS;
		assert_int_equal(hold(&a), TURN_HELD);
		turn_count_peers(&b, now);
		assert_int_equal(pthread_create(&holder, NULL, hand_over_soon, NULL), 0);
		for (int i = 0; i < 1000 && b.peer_records[0].is_crowded; i++) {
			turn_count_peers(&b, now);
			wait_for_a(200 * MS);
		}
		pthread_join(holder, NULL);
	}
	assert_false(b.peer_records[0].is_crowded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(a_slice_wakes_no_more_than_there_are_others),
		TURN_TEST(who_was_not_woken_looks_more_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
