/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of a thread on the virtual clock. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "tests/clock/page.h"

#define NS_PER_S 1000000000

/* System calls past the C library, whose syscall() is among what is replaced. Returns -errno. */
long system_call(long number, long a, long b, long c, long d, long e, long f);
#define CALL(name, a, b, c, d, e, f) \
	system_call(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Whether the process is on a virtual clock at all. */
bool clock_is_virtual(void);
extern struct clock_page *clock_page;

/*
 * How far CLOCK_MONOTONIC is ahead of the driver's, in whole ms, in this process's time namespace, which shifts virtual time as it
 * does the host's. Found anew by clock_find_namespace(). CLOCK_BOOTTIME is taken for not shifted.
 */
extern int64_t clock_ahead_ns;
void clock_find_namespace(void);

/* Monotonic time of the driver's. A thread that reads the same time again and again waits for it to pass, and sleeps a little. */
uint64_t clock_read_ns(void);

/* 0, or -EINTR. */
int clock_sleep_until(uint64_t deadline_ns);

/* A thread that has slept for so long goes on late, where CLOCK_LATE says so. */
void clock_wake_up(uint64_t slept_ns);

/* A wait for a futex that also ends at the deadline: 0, -ETIMEDOUT, or another -errno. */
long clock_wait_on(const void *word, uint32_t value, uint64_t deadline_ns);

/* Any other wait: between these the thread asks the kernel to wait, and is waked as the state says. */
void clock_begin_wait(enum thread_state state, uint64_t deadline_ns);
void clock_end_wait(void);

/* A record for a thread or child of this process that is about to begin. */
struct thread_record *clock_new_record(void);
/* The thread has begun, and takes it from the process that made it; another one where that process is gone, and the record with it. */
void clock_take_record(struct thread_record *record, pid_t maker);
