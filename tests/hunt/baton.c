/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baton. A thread that sleeps because another has what it waits for, which is how locks of the tenant library
 * wait (base/lock.h), gives the baton on and is passed over until somebody has come to a yield point. A thread
 * that is stuck elsewhere loses it after a while.
 */
#include "tests/hunt/baton.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STUCK_MS 200

static struct {
	pthread_mutex_t lock;
	pthread_cond_t has_changed;
	baton_watch_fn *watch;
	unsigned threads, has_joined;
	unsigned order[BATON_THREADS]; /* of priority */
	bool is_over[BATON_THREADS], is_waiting[BATON_THREADS];
	unsigned pause_at[BATON_THREADS];
	unsigned holder;
	unsigned long yields;
} baton = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_changed = PTHREAD_COND_INITIALIZER};

static __thread int me = -1;

static void forget_in_child(void)
{
	me = -1;
}

void baton_begin(unsigned threads, baton_watch_fn *watch)
{
	baton.watch = watch;
	baton.threads = threads;
	for (unsigned i = 0; i < threads; i++)
		baton.order[i] = i;
	pthread_atfork(NULL, NULL, forget_in_child);
}

/* The first that can go on; the caller where there is none. */
static unsigned choose(unsigned otherwise)
{
	for (unsigned i = 0; i < baton.threads; i++) {
		unsigned thread = baton.order[i];

		if (!baton.is_over[thread] && !baton.is_waiting[thread])
			return thread;
	}
	return otherwise;
}

static void go_behind_all(unsigned thread)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < baton.threads; i++)
		if (baton.order[i] != thread)
			baton.order[kept++] = baton.order[i];
	baton.order[kept] = thread;
}

static void nobody_waits(void)
{
	for (unsigned i = 0; i < baton.threads; i++)
		baton.is_waiting[i] = false;
}

/* Under the lock, until it is the thread's turn. */
static void wait_for_baton(unsigned thread)
{
	while (baton.holder != thread || baton.has_joined < baton.threads) {
		unsigned long seen = baton.yields;
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += STUCK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&baton.has_changed, &baton.lock, &until) == ETIMEDOUT &&
			seen == baton.yields && baton.has_joined == baton.threads)
			baton.holder = thread;
	}
}

static void hand_to(unsigned next, unsigned thread)
{
	if (next == baton.holder && next == thread)
		return;
	baton.holder = next;
	pthread_cond_broadcast(&baton.has_changed);
	wait_for_baton(thread);
}

void baton_join(unsigned thread)
{
	pthread_mutex_lock(&baton.lock);
	me = (int)thread;
	baton.has_joined++;
	pthread_cond_broadcast(&baton.has_changed);
	wait_for_baton(thread);
	pthread_mutex_unlock(&baton.lock);
}

void baton_leave(void)
{
	pthread_mutex_lock(&baton.lock);
	baton.is_over[me] = true;
	nobody_waits();
	baton.holder = choose(baton.holder);
	baton.yields++;
	pthread_cond_broadcast(&baton.has_changed);
	me = -1;
	pthread_mutex_unlock(&baton.lock);
}

void baton_pause_at(unsigned n)
{
	if (me >= 0)
		baton.pause_at[me] = n;
}

unsigned long baton_yields(void)
{
	return baton.yields;
}

void baton_yield(const char *place)
{
	int saved_errno = errno;
	unsigned thread = (unsigned)me;

	if (me < 0)
		return;
	pthread_mutex_lock(&baton.lock);
	/* It was stuck, and lost it. */
	if (baton.holder != thread)
		wait_for_baton(thread);
	baton.yields++;
	baton.watch(place);
	nobody_waits();
	if (baton.pause_at[thread] > 0 && --baton.pause_at[thread] == 0)
		go_behind_all(thread);
	hand_to(choose(thread), thread);
	pthread_mutex_unlock(&baton.lock);
	errno = saved_errno;
}

/* False where nobody else can go on either. */
static bool give_way(void)
{
	unsigned thread = (unsigned)me, next;

	pthread_mutex_lock(&baton.lock);
	baton.is_waiting[thread] = true;
	next = choose(thread);
	if (next == thread)
		nobody_waits();
	else
		hand_to(next, thread);
	pthread_mutex_unlock(&baton.lock);
	return next != thread;
}

/* In the C library's place: who sleeps waits for somebody. */
__attribute__((visibility("default"))) int nanosleep(
	const struct timespec *duration, struct timespec *ret_left)
{
	if (me >= 0 && give_way())
		return 0;
	return (int)syscall(SYS_nanosleep, duration, ret_left);
}
