/* SPDX-License-Identifier: Apache-2.0 */
/* The other part of what is preloaded: threads and processes that begin, and the waits of threads for each other. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/clock/wait.h"

#define EXPORT	      __attribute__((visibility("default")))
#define LOCK_FIRST_NS 1000

/* A condition: a word that grows, and the clock of the waits for it. */
struct condition {
	_Atomic uint32_t news;
	int clock;
};
_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it lies in one");

static uint64_t monotonic_of(clockid_t clock, const struct timespec *at)
{
	uint64_t ns = (uint64_t)at->tv_sec * NS_PER_S + (uint64_t)at->tv_nsec;
	uint64_t offset_ns =
		(uint64_t)(clock == CLOCK_REALTIME ? clock_page->realtime_ns : clock_ahead_ns);

	return (int64_t)(ns - offset_ns) > 0 ? ns - offset_ns : 0;
}

EXPORT int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	struct condition *c = (struct condition *)cond;
	clockid_t clock = CLOCK_REALTIME;

	if (attr)
		pthread_condattr_getclock(attr, &clock);
	memset(cond, 0, sizeof(*cond));
	c->clock = clock;
	return 0;
}

EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
	return 0;
}

static int wake(pthread_cond_t *cond, int count)
{
	struct condition *c = (struct condition *)cond;

	atomic_fetch_add(&c->news, 1);
	CALL(futex, &c->news, FUTEX_WAKE, count, NULL, NULL, 0);
	return 0;
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	return wake(cond, 1);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	return wake(cond, 0x7fffffff);
}

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct condition *c = (struct condition *)cond;
	uint32_t news = atomic_load(&c->news);

	pthread_mutex_unlock(mutex);
	CALL(futex, &c->news, FUTEX_WAIT, news, NULL, NULL, 0);
	return pthread_mutex_lock(mutex);
}

EXPORT int pthread_cond_clockwait(
	pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	struct condition *c = (struct condition *)cond;
	uint32_t news = atomic_load(&c->news);
	long r;
	int locked;

	if (!clock_is_virtual())
		return ENOSYS;
	pthread_mutex_unlock(mutex);
	r = clock_wait_on(&c->news, news, monotonic_of(clock, until));
	locked = pthread_mutex_lock(mutex);
	return !locked && r == -ETIMEDOUT ? ETIMEDOUT : locked;
}

EXPORT int pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return pthread_cond_clockwait(cond, mutex, ((struct condition *)cond)->clock, until);
}

/* While the mutex's owner runs, no time passes; while it is stopped, it does. */
EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t pause_ns = LOCK_FIRST_NS;
	int r;

	while ((r = pthread_mutex_trylock(mutex)) == EBUSY && clock_is_virtual()) {
		uint64_t now_ns = atomic_load(&clock_page->now_ns);

		if (now_ns >= monotonic_of(CLOCK_REALTIME, until))
			return ETIMEDOUT;
		clock_sleep_until(now_ns + pause_ns);
		pause_ns *= 2;
	}
	return r;
}

/* A thread and a process have their record before their parent goes on. */
struct beginning {
	void *(*start)(void *);
	void *argument;
	struct thread_record *record;
};

static void *begin_thread(void *argument)
{
	struct beginning b = *(struct beginning *)argument;

	free(argument);
	clock_take_record(b.record, getpid());
	return b.start(b.argument);
}

EXPORT int pthread_create(
	pthread_t *ret, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct beginning *b;
	int r;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
	if (!clock_is_virtual())
		return real(ret, attr, start, argument);
	b = malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	*b = (struct beginning){start, argument, clock_new_record()};
	r = real(ret, attr, begin_thread, b);
	if (r) {
		record_pass(b->record, owner_of(getpid(), 0), 0);
		free(b);
	}
	return r;
}

EXPORT pid_t fork(void)
{
	static pid_t (*real)(void);
	struct thread_record *child;
	pid_t parent, pid;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "fork");
	if (!clock_is_virtual())
		return real();
	parent = getpid();
	child = clock_new_record();
	pid = real();
	if (pid == 0) {
		clock_take_record(child, parent);
		clock_find_namespace();
	} else {
		/* the child may not have come so far, or have been killed */
		record_pass(child, owner_of(parent, 0), pid < 0 ? 0 : owner_of(pid, pid));
	}
	return pid;
}

/* A child of vfork() would share the thread's record. */
EXPORT pid_t vfork(void)
{
	return fork();
}
