/* SPDX-License-Identifier: Apache-2.0 */
/* The context that is current for the calling thread: that it stays so, and another one for a question of ours. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/*
 * What the driver makes belongs to the context that is current when it makes it, and a signal's handler or a callback of the driver may
 * change that in the middle of a hook, and change it back. CUDA promises nothing of calls from there. So such a hook has a CURRENT_STAYS()
 * scope, in which this thread makes no other context current.
 *
 * What came about all the same is seen. Calls of this thread that may make another context current: begun << 32 | under way. A hook takes
 * this first, then asks which context or device is current, calls the driver, asks what else it wants to know of the current
 * context, and believes all of that only where current_is_same() says so last.
 */
extern __thread unsigned current_stays_calls;
extern __thread uint64_t current_calls;
#define CURRENT_CALL ((UINT64_C(1) << 32) + 1)

static inline uint64_t current_since(void)
{
	return current_calls;
}

/* Whether none of them was under way then, and none has begun since. */
static inline bool current_is_same(uint64_t since)
{
	return (uint32_t)since == 0 && since == current_calls;
}

/* The same for the call that is such a one itself. */
static inline bool current_is_by_this_call(uint64_t since)
{
	return (uint32_t)since == 1 && since == current_calls;
}

static inline int current_call_begins(void)
{
	current_calls += CURRENT_CALL;
	return 0;
}

static inline void current_call_ends(const int *scope)
{
	(void)scope;
	current_calls--;
}

/* The rest of the enclosing block is such a call. */
#define CURRENT_SCOPE()                                                          \
	__attribute__((cleanup(current_call_ends), unused)) int current_scope_ = \
		current_call_begins()

static inline void current_stays_begin(void)
{
	current_stays_calls++;
}

static inline void current_stays_end(void)
{
	current_stays_calls--;
}

static inline int current_stays_begins(void)
{
	current_stays_begin();
	return 0;
}

static inline void current_stays_ends(const int *scope)
{
	(void)scope;
	current_stays_end();
}

#define CURRENT_STAYS()                                                           \
	__attribute__((cleanup(current_stays_ends), unused)) int current_stays_ = \
		current_stays_begins()

/* Whether this thread is in none; else the call is refused: CUDA_ERROR_NOT_PERMITTED. */
static inline bool current_may_change(void)
{
	return !current_stays_calls;
}

/* The context; NULL: there is none, or the driver does not say. */
CUcontext current_context(void);

/*
 * Makes the context current. False where nothing is to be undone: it is current already, it is NULL, or the driver
 * refuses it.
 */
bool current_enter(CUcontext context);

/* Undoes current_enter(), by its answer. */
void current_leave(bool is_entered);
