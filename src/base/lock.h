/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for the threads of one process, without libpthread.
 *
 * The tenant library must run on C libraries where pthread_mutex_lock lives in a library of its
 * own that the program may not have loaded. On the way of an allocation it guards a few memory accesses, and
 * a question of 10 to 40 ns (pools.c, local.c). A meter's lock is held over the record and the query of an event, a
 * primary context's over the driver's call that makes or ends it (contexts.c). So a waiter spins a moment and then sleeps in short steps, in case the holder has lost its processor;
 * and giving it back is a plain store, half the cost of a futex that must look for sleepers. A child of fork()
 * starts with fresh locks (slice/parts.h).
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOCK_SPINS    200
#define LOCK_SLEEP_NS 50000

struct lock {
	_Atomic uint32_t is_held; /* 0: not */
};

#define LOCK_INIT \
	{         \
		0 \
	}

/* Tells the processor that this is a spin. */
static inline void lock_pause(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline int lock_try(struct lock *l)
{
	/* pairs with the release in lock_leave() */
	return atomic_exchange_explicit(&l->is_held, 1, memory_order_acquire) == 0;
}

/* What a waiter does after its i-th attempt. */
static __attribute__((noinline, cold, unused)) void lock_rest(unsigned i)
{
	struct timespec pause = {.tv_nsec = LOCK_SLEEP_NS};
	int saved_errno = errno;

	if (i < LOCK_SPINS)
		lock_pause();
	else
		nanosleep(&pause, NULL);
	errno = saved_errno;
}

static __attribute__((noinline, cold, unused)) void lock_wait(struct lock *l)
{
	for (unsigned i = 0;; i++) {
		/* relaxed: only to know when to try */
		if (!atomic_load_explicit(&l->is_held, memory_order_relaxed) && lock_try(l))
			break;
		lock_rest(i);
	}
}

static inline void lock_enter(struct lock *l)
{
	if (!lock_try(l))
		lock_wait(l);
}

/* The same, but for no longer than that: false where somebody else keeps it. */
static __attribute__((unused)) bool lock_enter_within(struct lock *l, uint64_t longest_ns)
{
	uint64_t deadline_ns;

	if (lock_try(l))
		return true;
	deadline_ns = clock_now_ns() + longest_ns;
	for (unsigned i = 0; !lock_try(l); i++) {
		if (clock_now_ns() > deadline_ns)
			return false;
		lock_rest(i);
	}
	return true;
}

static inline void lock_leave(struct lock *l)
{
	/* pairs with the acquire in lock_try() */
	atomic_store_explicit(&l->is_held, 0, memory_order_release);
}

static inline void lock_cleanup(struct lock **l)
{
	lock_leave(*l);
}

/* Holds the lock until the end of the enclosing scope. */
#define LOCK_SCOPE(l)                                                             \
	__attribute__((cleanup(lock_cleanup), unused)) struct lock *lock_scope_ = \
		(lock_enter(l), (l))

/*
 * For what a child of fork() comes to before it can tell that it is one: the word is its holder's
 * PID, and who finds another process's has found a copy of it, which nobody will ever give back. What
 * such a lock guards must be fit to be begun anew at any moment. Costs a system call.
 */
static inline bool lock_try_own(struct lock *l)
{
	uint32_t me = (uint32_t)getpid(), holder = 0;

	/* pairs with the release in lock_leave() */
	while (!atomic_compare_exchange_strong_explicit(
		&l->is_held, &holder, me, memory_order_acquire, memory_order_relaxed))
		if (holder == me)
			return false;
	return true;
}

static inline struct lock *lock_enter_own(struct lock *l)
{
	for (unsigned i = 0; !lock_try_own(l); i++)
		lock_rest(i);
	return l;
}

#define LOCK_SCOPE_OWN(l) \
	__attribute__((cleanup(lock_cleanup), unused)) struct lock *lock_scope_ = lock_enter_own(l)
