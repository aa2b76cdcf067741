/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for the threads of one process, without libpthread.
 *
 * The tenant library must run on C libraries where pthread_mutex_lock lives in a library of its
 * own that the program may not have loaded, so this is a futex and three states: 0 free, 1 held,
 * 2 held and somebody sleeps. What it guards is always a few memory accesses; no system call and no
 * driver call is ever made while it is held, so a waiter's sleep is short. A child of fork() starts
 * with fresh locks (state_forget_parent()).
 */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
	_Atomic uint32_t word;
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
	uint32_t is_free = 0;

	/* pairs with the release in lock_leave() */
	return atomic_compare_exchange_strong_explicit(
		&l->word, &is_free, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void lock_enter(struct lock *l)
{
	int saved_errno = errno;

	if (lock_try(l))
		return;
	for (int i = 0; i < 100; i++) {
		lock_pause();
		if (lock_try(l))
			return;
	}
	/* pairs with the release in lock_leave() */
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = saved_errno;
}

static inline void lock_leave(struct lock *l)
{
	/* pairs with the acquires in lock_try() and lock_enter() */
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void lock_cleanup(struct lock **l)
{
	lock_leave(*l);
}

/* Holds the lock until the end of the enclosing scope. */
#define LOCK_SCOPE(l)                                                             \
	__attribute__((cleanup(lock_cleanup), unused)) struct lock *lock_scope_ = \
		(lock_enter(l), (l))
