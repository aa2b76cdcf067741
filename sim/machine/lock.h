/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that a scope holds. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/*
 * A mutex may lie in shared memory and be robust. Then its holder may have died, and the next one
 * gets it as it is: what such a mutex guards is right after every single store.
 */
static inline bool lock_is_taken(pthread_mutex_t *mutex, int result)
{
	if (result == EOWNERDEAD)
		result = pthread_mutex_consistent(mutex);
	return result == 0;
}

static inline pthread_mutex_t *lock_enter(pthread_mutex_t *mutex)
{
	lock_is_taken(mutex, pthread_mutex_lock(mutex));
	return mutex;
}

/* Returns the mutex, or NULL where somebody holds it. */
static inline pthread_mutex_t *lock_try(pthread_mutex_t *mutex)
{
	return lock_is_taken(mutex, pthread_mutex_trylock(mutex)) ? mutex : NULL;
}

/* NULL: there is nothing to give back. */
static inline void lock_leave(pthread_mutex_t *mutex)
{
	if (mutex)
		pthread_mutex_unlock(mutex);
}

static inline void lock_cleanup(pthread_mutex_t **mutex)
{
	lock_leave(*mutex);
}

/* Holds until the end of the enclosing scope what lock_enter() or lock_try() gave. */
#define LOCK_SCOPE_AS(name, taken) \
	__attribute__((cleanup(lock_cleanup), unused)) pthread_mutex_t *name = (taken)

#define LOCK_PASTE(line) lock_scope_##line
#define LOCK_NAME(line)	 LOCK_PASTE(line)

/* Holds the mutex until the end of the enclosing scope. */
#define LOCK_SCOPE(mutex) LOCK_SCOPE_AS(LOCK_NAME(__LINE__), lock_enter(mutex))
