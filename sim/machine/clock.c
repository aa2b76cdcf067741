/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the machine. */
#include "sim/machine/clock.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

uint64_t machine_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void machine_sleep_ns(uint64_t duration_ns)
{
	struct timespec left = {.tv_sec = (time_t)(duration_ns / NS_PER_S),
		.tv_nsec = (long)(duration_ns % NS_PER_S)};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}
