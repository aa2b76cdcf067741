/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: the wall clock is ahead by as many seconds as the file $STEPPED_CLOCK says, and monotonic time, which never goes
 * back, by as many as $STEPPED_MONOTONIC says. Monotonic time goes on so many times slower as $SLOWED_MONOTONIC says.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT	 __attribute__((visibility("default")))

#define NS_PER_S INT64_C(1000000000)

/* By system calls alone: a sanitizer asks for the time inside malloc(). */
static long read_number(const char *name)
{
	const char *path = getenv(name);
	int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32];
	long bytes;

	if (file < 0)
		return 0;
	bytes = syscall(SYS_read, file, text, sizeof(text) - 1);
	syscall(SYS_close, file);
	text[bytes < 0 ? 0 : bytes] = '\0';
	return strtol(text, NULL, 10);
}

/* Of a program of one thread. */
static void slow_down(struct timespec *time, long times)
{
	static int64_t seen_ns, shown_ns;
	int64_t now_ns = time->tv_sec * NS_PER_S + time->tv_nsec;

	if (!seen_ns)
		seen_ns = shown_ns = now_ns;
	/* the coarse clock is behind the other */
	if (now_ns > seen_ns) {
		shown_ns += (now_ns - seen_ns) / (times > 1 ? times : 1);
		seen_ns = now_ns;
	}
	*time = (struct timespec){shown_ns / NS_PER_S, shown_ns % NS_PER_S};
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret_time->tv_sec += read_number("STEPPED_CLOCK");
	if (!result && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) {
		if (getenv("SLOWED_MONOTONIC"))
			slow_down(ret_time, read_number("SLOWED_MONOTONIC"));
		ret_time->tv_sec += read_number("STEPPED_MONOTONIC");
	}
	return result;
}

EXPORT time_t time(time_t *ret_time)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

EXPORT int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*ret_time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}
