/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads have numbers, each its own. The C library tells of a thread's end by a key, which has that number as its value. Its functions are
 * found when they are needed, as they have a new version since they are the C library's own (docs/decisions/0005).
 */
#include "tenant/compute/stream_thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "tenant/driver/symbols.h"

typedef int create_fn(pthread_key_t *key, void (*end)(void *value));
typedef int set_fn(pthread_key_t key, const void *value);

static __thread const void *own;
static __thread bool is_heard; /* of its end, or that cannot be */
static pthread_key_t key;
static set_fn *set;
static void (*told)(const void *thread);

enum { UNMADE, MAKING, MADE };

static void end(void *thread)
{
	told(thread);
}

static void make_key(void (*ends)(const void *thread))
{
	const struct libc_symbols *libc = symbols_libc();
	create_fn *create =
		libc ? (create_fn *)libc->dlsym(RTLD_DEFAULT, "pthread_key_create") : NULL;

	told = ends;
	if (create && create(&key, end) == 0)
		set = (set_fn *)libc->dlsym(RTLD_DEFAULT, "pthread_setspecific");
}

static const void *begin(void (*ends)(const void *thread))
{
	static _Atomic uintptr_t last;
	static _Atomic int state = UNMADE;
	int seen = UNMADE;

	/* relaxed: only that it is another one each time */
	if (!own)
		own = (const void *)(atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1);
	/* Another thread may be making it: then this one asks again. The store pairs with the exchange of those that come later. */
	if (atomic_compare_exchange_strong(&state, &seen, MAKING)) {
		make_key(ends);
		atomic_store(&state, MADE);
		seen = MADE;
	}
	is_heard = seen == MADE;
	if (is_heard && set)
		(void)set(key, own);
	return own;
}

const void *stream_thread(void (*ends)(const void *thread))
{
	return LIKELY(is_heard) ? own : begin(ends);
}

bool stream_thread_is_own(const void *thread)
{
	return thread == own;
}
