/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: the wall clock is ahead by as many seconds as the file $STEPPED_CLOCK says, and monotonic time, which never goes
 * back, by as many as $STEPPED_MONOTONIC says.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* By system calls alone: a sanitizer asks for the time inside malloc(). */
static long step_s(const char *name)
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

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret_time->tv_sec += step_s("STEPPED_CLOCK");
	if (!result && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
		ret_time->tv_sec += step_s("STEPPED_MONOTONIC");
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
