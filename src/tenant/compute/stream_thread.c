/* SPDX-License-Identifier: Apache-2.0 */
/* Threads have numbers, each its own. The C library tells of a thread's end by a key, which has that number as its value. */
#include "tenant/compute/stream_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

static __thread const void *own;
static pthread_key_t key;
static bool has_key;
static void (*_Atomic told)(const void *thread);

static void end(void *thread)
{
	/* Pairs with the store before the key's value was set. */
	atomic_load (&told)(thread);
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, end) == 0;
}

static const void *begin(void (*ends)(const void *thread))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic uintptr_t last;

	/* relaxed: only that it is another one each time */
	own = (const void *)(atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1);
	atomic_store(&told, ends);
	pthread_once(&once, make_key);
	if (has_key)
		(void)pthread_setspecific(key, own);
	return own;
}

const void *stream_thread(void (*ends)(const void *thread))
{
	return LIKELY(own) ? own : begin(ends);
}
