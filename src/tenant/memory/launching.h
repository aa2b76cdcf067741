/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that are on their way to the driver, of functions that were launched before (marks.h): those are not pinned.
 *
 * Each thread writes what it launches into a word of its own, looks for the mark then, and takes the function away again when the driver has answered.
 * What unloads code forgets the marks, has all processors see what they were told (membarrier), and waits for those words that
 * have a function of that code: a launch either finds no mark, or is seen. The launch has no fence for that.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"
#include "tenant/driver/patience.h"

struct launching {
	_Atomic uintptr_t function; /* 0: none is under way */
	_Atomic(CUcontext) context; /* in which; NULL: the process had one alone */
	_Atomic int thread;	    /* whose word it is; 0: nobody's */
} __attribute__((aligned(CACHE_LINE_BYTES)));
extern __thread struct launching *launching_own;

/* Before the mark is looked for. False where it cannot be told: the function is to be pinned (code_pins.h). */
static inline bool launching_begin(CUfunction function)
{
	struct launching *own = launching_own;

	/* relaxed: written by this thread alone; a signal's handler may come within a launch */
	if (UNLIKELY(!own || atomic_load_explicit(&own->function, memory_order_relaxed)))
		return false;
	/* relaxed: the barrier of launching_wait() orders it before the look at the mark */
	atomic_store_explicit(&own->function, (uintptr_t)function, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

/* The same where there are several contexts. */
static inline bool launching_begin_in(CUfunction function, CUcontext context)
{
	struct launching *own = launching_own;

	if (UNLIKELY(!own || atomic_load_explicit(&own->function, memory_order_relaxed)))
		return false;
	/* relaxed: as above */
	atomic_store_explicit(&own->context, context, memory_order_relaxed);
	return launching_begin(function);
}

static inline void launching_end(void)
{
	/* pairs with the load in launching_wait(): what the driver did is done */
	atomic_store_explicit(&launching_own->function, 0, memory_order_release);
}

/* Whether launching_begin() cannot tell. */
static inline bool launching_is_busy(void)
{
	/* relaxed: as above */
	return !launching_own ||
	       atomic_load_explicit(&launching_own->function, memory_order_relaxed);
}

/* A word for this thread, where it has none and one is free. */
void launching_take_word(void);

/*
 * When no mark is left: until no launch is on its way whose function is_wanted() names. Of those that begin meanwhile none finds a mark. False where it
 * takes too long, or this thread is in such a launch itself.
 */
typedef bool launching_wanted_fn(CUfunction function, CUcontext context, uint64_t what);
bool launching_wait(
	launching_wanted_fn *is_wanted, uint64_t what, struct patience *patience) MUST_CHECK;

/* Whether this thread is in such a launch: it would wait for itself. */
bool launching_is_own(void);

/* For a child of fork(). */
void launching_reset_after_fork(void);
