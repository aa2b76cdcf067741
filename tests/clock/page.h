/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a test on a virtual clock share: the time, and a record of each thread.
 *
 * Time stands while any thread runs. When all wait, the driver (drive.c) sets it to the earliest end of a wait.
 * All atomics here are sequentially consistent: the driver and the threads read what the other writes, crosswise.
 */
#pragma once

#include <stdatomic.h>
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
	THREAD_FREE,	/* a record of no thread */
	THREAD_RUNS,	/* or waits for a thread, a pipe or a child; only the kernel knows */
	THREAD_BLOCKED, /* such a wait, as the driver saw; the driver looks again each time */
	THREAD_LISTENS, /* such a wait, which also ends at deadline_ns */
	THREAD_POLLS,	/* the same; CLOCK_SIGNAL ends it */
	THREAD_SLEEPS,	/* until deadline_ns, and no other thread wakes it */
};

struct thread_record {
	_Atomic uint32_t state;
	_Atomic uint32_t wake; /* a futex: grows when the driver ends the wait */
	_Atomic int32_t tid;   /* 0: of a thread that is about to begin */
	_Atomic int32_t pid;
	_Atomic int32_t parent; /* while it is in fork(): its pid */
	_Atomic uint64_t deadline_ns;
};

struct clock_page {
	uint64_t magic;
	int64_t realtime_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	int64_t host_ns; /* the host's CLOCK_MONOTONIC less its CLOCK_BOOTTIME, in the driver's time namespace */
	_Alignas(64) _Atomic uint64_t now_ns;
	_Alignas(64) _Atomic uint32_t running; /* records with THREAD_RUNS */
	_Atomic uint32_t changes;	       /* a futex: grows with every wait that begins */
	_Atomic uint32_t is_driver_asleep;
	_Atomic uint32_t used; /* records from here on were never taken */
	struct thread_record threads[CLOCK_THREADS];
};
