/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: functions that have been launched, and libraries and kernels that have been used, which take nothing more in their context.
 *
 * All are forgotten when something is unloaded, or a context comes or ends: handles come again.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

struct device;

/*
 * Functions that have been launched, and libraries and kernels that have been used. Each has a place, and the others in that
 * line of the processor's cache: what finds none free takes the place of another, and both are looked into at each launch.
 */
#define MARKS_PLACE_BITS 13 /* PyTorch launches some hundreds */
#define MARKS_PLACES	 (1u << MARKS_PLACE_BITS)
#define MARKS_WAYS	 8u
extern _Atomic uintptr_t marks_places[MARKS_PLACES];
extern _Atomic bool marks_has_many_contexts;

/*
 * What a function is known by; a CUkernel is another function in every context. Handles are addresses, which a program can have
 * by the thousand: without the hash two of them in two contexts give one word.
 */
static inline uintptr_t marks_key(CUfunction function, CUcontext context)
{
	return (uintptr_t)function ^ (uintptr_t)hash_u64((uintptr_t)context);
}

uintptr_t marks_key_slowly(CUfunction function, CUstream stream);

/* The number of its own place, which with another way in its lowest bits is that of one beside it. */
static inline uint32_t marks_place(uintptr_t key)
{
	return hash_place(key, MARKS_PLACE_BITS);
}

static inline bool marks_has(uintptr_t key)
{
	uint32_t own = marks_place(key);

	/* A place without a mark holds 0, too. relaxed: nothing is read through it; who launches has the function from who loaded it */
	for (uint32_t way = 0; key && way < MARKS_WAYS; way++)
		if (LIKELY(atomic_load_explicit(&marks_places[own ^ way], memory_order_relaxed) ==
			    key))
			return true;
	return false;
}

/* Whether functions are told apart by context. */
static inline bool marks_are_by_context(void)
{
	/* relaxed: a context that is not seen yet has no function that could be launched */
	return UNLIKELY(atomic_load_explicit(&marks_has_many_contexts, memory_order_relaxed));
}

/*
 * Whether the function has been launched before in the stream's context, so that its launch takes nothing. About
 * 2 ns. No function at all has not.
 */
static inline bool marks_is_launched(CUfunction function, CUstream stream)
{
	uintptr_t key = (uintptr_t)function;

	if (marks_are_by_context())
		key = marks_key_slowly(function, stream);
	return LIKELY(marks_has(key));
}

/* The same at once, where one context is all there is; false may mean that it is not known. */
static inline bool marks_is_launched_at_once(CUfunction function)
{
	return LIKELY(!marks_are_by_context() && marks_has((uintptr_t)function));
}

/*
 * The next launch of a function in the current context takes nothing, nor does the next use of what a word stands for: as of a time at which
 * it was looked into.
 */
uint32_t marks_generation(void);
void marks_put(uintptr_t handle, uint32_t generation);

/*
 * Around a change of the room for frames: each is to be looked at once more, and none is launched unseen until the change is
 * in the books. A launch that has been found to take nothing, and has not come to the driver, is the exception, unless it is waited for
 * (launching.h, SECURITY.md); what it takes is found by the next comparison.
 */
void marks_room_begin(void);
void marks_room_end(void);

/*
 * Around the driver's call that unloads a module or library, which may give its handle to the next one before we hear of the end: no
 * managed variables are under it then (managed_data.h), and nothing is taken for launched or used. The second gets what the first
 * returned.
 */
uint64_t marks_unload_begin(const void *owner) MUST_CHECK;
void marks_unload_end(const void *owner, uint64_t unloading, bool is_gone);

/*
 * Before a context is made. From the second one on functions are told apart by context: another thread may use one before it is
 * in the books.
 */
void marks_context_comes(struct device *device);
void marks_context_ended(struct device *device, CUcontext context);

/* For a child of fork(). */
void marks_reset_after_fork(void);
