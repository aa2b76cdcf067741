/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks that the project reads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
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

/*
 * The processor's own count, of which nothing is known but that it grows at a steady rate: for what must not
 * cost more than a few ns, and is no worse for coming at a wrong time now and then.
 */
static inline uint64_t clock_ticks(void)
{
#if defined(VGPU_FAULTS)
	return clock_now_ns(); /* tests set the clock, and not this count */
#elif defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return clock_coarse_ns();
#endif
}

/* So many of them are about a ms: before their rate was measured. */
static inline uint64_t clock_ticks_of_ms(void)
{
#if defined(__x86_64__) && !defined(VGPU_FAULTS)
	return 3000000; /* 1 to 5 GHz */
#elif defined(__aarch64__) && !defined(VGPU_FAULTS)
	uint64_t hertz; /* 1 MHz to 1 GHz */

	__asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
	return hertz / 1000;
#else
	return 1000000;
#endif
}

/*
 * Whether the time in *next_ns has come; then it is set one interval ahead. For what is to be done
 * now and then by whoever comes along: two that come at once may both be told to.
 */
static inline bool clock_is_due(_Atomic uint64_t *next_ns, uint64_t interval_ns)
{
	uint64_t now = clock_coarse_ns();

	/* relaxed: the clock decides how often, nothing else does */
	if (now < atomic_load_explicit(next_ns, memory_order_relaxed))
		return false;
	atomic_store_explicit(next_ns, now + interval_ns, memory_order_relaxed);
	return true;
}
