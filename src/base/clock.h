/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks that the project reads. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Monotonic time in ns, exact; about 20 ns a call. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Monotonic time in ns, as of the last kernel tick (1 to 10 ms old); about 5 ns a call. */
static inline uint64_t clock_coarse_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
