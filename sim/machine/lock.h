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

/* Takes the mutex only where nobody holds it. */
static inline bool lock_try(pthread_mutex_t *mutex)
{
	return lock_is_taken(mutex, pthread_mutex_trylock(mutex));
}

static inline pthread_mutex_t *lock_enter(pthread_mutex_t *mutex)
{
	lock_is_taken(mutex, pthread_mutex_lock(mutex));
	return mutex;
}

/* NULL: the scope holds nothing. */
static inline void lock_cleanup(pthread_mutex_t **mutex)
{
	if (*mutex)
		pthread_mutex_unlock(*mutex);
}

#define LOCK_NAME_(line) lock_scope_##line
#define LOCK_NAME(line)	 LOCK_NAME_(line)
#define LOCK_VARIABLE	 __attribute__((cleanup(lock_cleanup), unused)) pthread_mutex_t *

/* Holds the mutex until the end of the enclosing scope. */
#define LOCK_SCOPE(mutex) LOCK_VARIABLE LOCK_NAME(__LINE__) = lock_enter(mutex)
