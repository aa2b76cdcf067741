/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a test on a virtual clock share: the time, and a record of each thread.
 *
 * Time stands while any thread runs. When all wait, the driver (drive.c) sets it to the earliest end of a wait.
 *
 * A thread may be killed at each instruction, or lost as its process becomes another program: so whether a record is taken, and by
 * whom, is one word, which changes at once; and nothing else counts the records or what is in them.
 * All atomics here are sequentially consistent: the driver and the threads read what the other writes, crosswise.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_PAGE "TEST_CLOCK" /* environment: the page's path */
#define CLOCK_LIBRARY \
	"TEST_CLOCK_LIBRARY" /* environment: what is to be preloaded into every process */
#define CLOCK_LATE \
	"TEST_CLOCK_LATE_US" /* environment: by so many us threads wake up late; 0 where not given */
#define NEAR_NS	      100000 /* within which two clocks of the host are read */
#define CLOCK_MAGIC   UINT64_C(0x31636b6c63747376)
#define CLOCK_THREADS 4096
#define CLOCK_SIGNAL  63 /* ends a poll */

enum thread_state {
	THREAD_RUNS,	/* or waits for a thread, a pipe or a child; only the kernel knows */
	THREAD_BLOCKED, /* such a wait, as the driver saw; the driver looks again each time */
	THREAD_LISTENS, /* such a wait, which also ends at deadline_ns */
	THREAD_POLLS,	/* the same; CLOCK_SIGNAL ends it */
	THREAD_SLEEPS,	/* until deadline_ns, and no other thread wakes it */
};

struct thread_record {
	_Atomic uint64_t owner; /* owner_of() a thread; 0: nobody's, and in no timed wait */
	_Atomic uint64_t deadline_ns;
	_Atomic uint32_t state;
	_Atomic uint32_t wake; /* a futex: grows when the driver ends the wait */
};

struct clock_page {
	uint64_t magic;
	int64_t realtime_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	int64_t host_ns; /* the host's CLOCK_MONOTONIC less its CLOCK_BOOTTIME, in the driver's time namespace */
	_Alignas(64) _Atomic uint64_t now_ns;
	_Alignas(64) _Atomic uint32_t changes; /* a futex: grows with every wait that begins */
	_Atomic uint32_t is_driver_asleep;
	_Atomic uint32_t used; /* records from here on were never taken */
	struct thread_record threads[CLOCK_THREADS];
};

/* tid 0: a thread or child of that process, about to begin. Such records stand for each other. */
static inline uint64_t owner_of(int32_t pid, int32_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static inline int32_t owner_pid(uint64_t owner)
{
	return (int32_t)(owner >> 32);
}

static inline int32_t owner_tid(uint64_t owner)
{
	return (int32_t)owner;
}

/* False: it was not the first one's any more. */
static inline bool record_pass(struct thread_record *t, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong(&t->owner, &from, to);
}

/* Whether a record says that its thread runs, be it dead since. */
static inline bool page_has_runner(struct clock_page *page)
{
	unsigned used = atomic_load(&page->used);

	for (unsigned i = 0; i < used; i++)
		if (atomic_load(&page->threads[i].state) == THREAD_RUNS &&
			atomic_load(&page->threads[i].owner))
			return true;
	return false;
}
