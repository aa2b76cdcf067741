/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into every process of a test: clocks show virtual time, and waits with an end wait for that.
 *
 * Left as they are: alarms, and the time-outs of select(), epoll_wait() and semaphores. They count real time, and
 * only end what hangs.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "tests/clock/wait.h"

#define TICKS_FIRST 1000000000
#define TICK_NS	    10000000

#define EXPORT	    __attribute__((visibility("default")))

static int fail(long r)
{
	if (r >= 0)
		return (int)r;
	errno = (int)-r;
	return -1;
}

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

static bool is_ours(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
	       clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
	       clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

/* What the clock shows beyond the driver's monotonic time; less than 0 in the complement of two. */
static uint64_t offset_of(clockid_t clock)
{
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		return (uint64_t)clock_page->realtime_ns;
	return clock == CLOCK_BOOTTIME ? 0 : (uint64_t)clock_ahead_ns;
}

static uint64_t deadline_of(clockid_t clock, const struct timespec *at)
{
	uint64_t ns = ns_of(at) - offset_of(clock);

	return (int64_t)ns > 0 ? ns : 0;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!is_ours(clock) || !clock_is_virtual())
		return fail(CALL(clock_gettime, clock, ret, 0, 0, 0, 0));
	*ret = time_of(clock_read_ns() + offset_of(clock));
	return 0;
}

/* The kernel's ticks, which no time namespace shifts. */
EXPORT clock_t times(struct tms *ret)
{
	long r = CALL(times, ret, 0, 0, 0, 0, 0);

	return (clock_t)(clock_is_virtual() ? TICKS_FIRST + (long)(clock_read_ns() / TICK_NS) : r);
}

EXPORT int setns(int fd, int type)
{
	int r = fail(CALL(setns, fd, type, 0, 0, 0, 0));

	if (r == 0 && clock_is_virtual())
		clock_find_namespace();
	return r;
}

EXPORT time_t time(time_t *ret)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

EXPORT int gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	*ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}

EXPORT int clock_nanosleep(
	clockid_t clock, int flags, const struct timespec *request, struct timespec *ret_left)
{
	uint64_t deadline, before, now;
	int r;

	if (!is_ours(clock) || !clock_is_virtual())
		return -(int)CALL(clock_nanosleep, clock, flags, request, ret_left, 0, 0);
	deadline = flags & TIMER_ABSTIME ? deadline_of(clock, request)
					 : atomic_load(&clock_page->now_ns) + ns_of(request);
	before = atomic_load(&clock_page->now_ns);
	r = clock_sleep_until(deadline);
	if (r == 0 && deadline > before)
		clock_wake_up(deadline - before);
	now = atomic_load(&clock_page->now_ns);
	if (r < 0 && ret_left && !(flags & TIMER_ABSTIME))
		*ret_left = time_of(deadline > now ? deadline - now : 0);
	return -r;
}

EXPORT int nanosleep(const struct timespec *request, struct timespec *ret_left)
{
	return fail(-clock_nanosleep(CLOCK_MONOTONIC, 0, request, ret_left));
}

EXPORT int usleep(useconds_t us)
{
	struct timespec t = time_of((uint64_t)us * 1000);

	return nanosleep(&t, NULL);
}

EXPORT unsigned int sleep(unsigned int s)
{
	struct timespec t = {.tv_sec = (time_t)s}, left = {.tv_sec = 0};

	return nanosleep(&t, &left) < 0 ? (unsigned int)left.tv_sec + 1 : 0;
}

/* A thread that yields again and again waits for another, and that one may sleep. */
EXPORT int sched_yield(void)
{
	if (clock_is_virtual())
		clock_read_ns();
	return fail(CALL(sched_yield, 0, 0, 0, 0, 0, 0));
}

EXPORT long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_futex && a[3] && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT &&
		clock_is_virtual())
		a[0] = clock_wait_on((const void *)a[0], (uint32_t)a[2],
			atomic_load(&clock_page->now_ns) + ns_of((const struct timespec *)a[3]));
	else
		a[0] = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (a[0] >= 0 || a[0] < -4095)
		return a[0];
	errno = (int)-a[0];
	return -1;
}

static void ignore(int number)
{
}

/* Nothing was ready at once. CLOCK_SIGNAL reaches the thread only while it waits. */
static long poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns, const sigset_t *mask)
{
	struct sigaction action = {.sa_handler = ignore};
	uint64_t bit = UINT64_C(1) << (CLOCK_SIGNAL - 1), within, before;
	struct timespec none = {.tv_sec = 0};
	long r;

	sigaction(CLOCK_SIGNAL, &action, NULL);
	CALL(rt_sigprocmask, SIG_BLOCK, &bit, &before, sizeof(bit), 0, 0);
	within = (mask ? *(const uint64_t *)mask : before) & ~bit;
	clock_begin_wait(THREAD_POLLS, deadline_ns);
	r = CALL(ppoll, fds, count, NULL, &within, sizeof(within), 0);
	clock_end_wait();
	/* one that came too late must not end another wait */
	while (CALL(rt_sigtimedwait, &bit, NULL, &none, sizeof(bit), 0, 0) > 0)
		;
	CALL(rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before), 0, 0);
	return r == -EINTR && atomic_load(&clock_page->now_ns) >= deadline_ns ? 0 : r;
}

EXPORT int ppoll(
	struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec none = {.tv_sec = 0};
	uint64_t deadline_ns;
	long r;

	if (!timeout || ns_of(timeout) == 0 || !clock_is_virtual())
		return fail(CALL(ppoll, fds, count, timeout, mask, sizeof(uint64_t), 0));
	deadline_ns = atomic_load(&clock_page->now_ns) + ns_of(timeout);
	r = CALL(ppoll, fds, count, &none, mask, sizeof(uint64_t), 0);
	return fail(r ? r : poll_until(fds, count, deadline_ns, mask));
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec t = time_of((uint64_t)timeout_ms * 1000000);

	return ppoll(fds, count, timeout_ms < 0 ? NULL : &t, NULL);
}
