/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks that the project reads.
 *
 * CLOCK_MONOTONIC is not one clock: each time namespace shows its processes another, by an offset that whoever made it has
 * chosen. What processes share is in the time of one clock, so a process can be told to follow that one (clock_follow()).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/bits.h"

/* CLOCK_MONOTONIC as the kernel shows it to this process, in ns. */
static inline uint64_t clock_shown_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How far what is shown is ahead of the clock that the process follows, and from when on that has been looked at. */
struct clock_lead {
	_Atomic uint64_t ahead_ns, seen_ns;
};
extern struct clock_lead clock_lead;

/* Looks whether the process has come into another time namespace. Returns the time. */
uint64_t clock_look(void);
#define CLOCK_LOOK_NS 50000000u

/*
 * Monotonic time in ns, exact; about 20 ns a call. Who has been brought into another namespace is seen at once where that is further
 * from the one before than what is looked at in any case.
 */
static inline uint64_t clock_now_ns(void)
{
	/* relaxed, both: only a process of one thread can change its namespace */
	uint64_t now =
		clock_shown_ns() - atomic_load_explicit(&clock_lead.ahead_ns, memory_order_relaxed);

	if (UNLIKELY(now - atomic_load_explicit(&clock_lead.seen_ns, memory_order_relaxed) >
		     CLOCK_LOOK_NS))
		return clock_look();
	return now;
}

/* The same as of the last kernel tick (1 to 10 ms old); about 5 ns a call. It looks at nothing. */
static inline uint64_t clock_coarse_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	/* relaxed: see clock_now_ns() */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec -
	       atomic_load_explicit(&clock_lead.ahead_ns, memory_order_relaxed);
}

/*
 * By what a clock is known again in every time namespace: how far it is ahead of the kernel's ticks (times()), which run as it
 * does, and nobody can set, to some 10 ms; 0: not known. And how far CLOCK_REALTIME is ahead of it, exactly until that is set.
 */
struct clock_mark {
	int64_t ticks_ns, wall_ns;
};

/* The mark of the clock that the kernel shows to this process. */
struct clock_mark clock_own_mark(void);

enum clock_relation {
	CLOCK_SAME,	/* *ret_ahead_ns is 0 */
	CLOCK_SHIFTED,	/* own is ahead by *ret_ahead_ns, exactly; less than 0: behind */
	CLOCK_WALL_SET, /* the same, and CLOCK_REALTIME has been set since; 0 */
	CLOCK_OTHER,	/* of another boot of the machine, as far as can be told; 0 */
};
enum clock_relation clock_relate(
	const struct clock_mark *mark, const struct clock_mark *own, int64_t *ret_ahead_ns);

/*
 * From now on the process's time is that of the clock of this mark. False where the mark is out of date: then it is
 * made what it has to be, for whoever comes next. One of zeros is nobody's yet, and becomes this process's.
 */
bool clock_follow(struct clock_mark *mark) MUST_CHECK;

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
