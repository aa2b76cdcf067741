/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own events, which are unknown to the program.
 *
 * The library believes what its events tell: when work ended, and that memory may be given back. Their handles are the
 * driver's, lie between those of the program's events, and were often the program's before. So each of them is made and
 * destroyed here (tools/check_layers.py finds others), and a call of the program's that records or destroys one, exports it,
 * or puts it into a graph, is answered as for a handle that the driver has not given out (hook_event.c).
 *
 * Whoever asks does so by a word of its handle's bucket, without a lock; only where that has events are they looked through.
 *
 * An event is the library's alone from its first record on: no call of the program's was under way for its handle, or came,
 * between the driver's answer and its place in the set; such an event is not used. Nor is one whose handle a graph of the
 * program's may still have, from an event that was destroyed.
 *
 * The driver forgets events with their contexts, and gives their handles out again. What it gives the program is the program's
 * then, and leaves the set before the program learns of it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

/* In the current context. What was done to the event before is undone by recording it. */
CUresult own_events_create(CUevent *ret_event, unsigned int flags) MUST_CHECK;

/* Also of one that has ended with its context, whose handle may be another event's now. */
void own_events_destroy(CUevent event);

/* Calls of the program's for handles that share a lane. Lower half: under way. Upper half: begun so far. */
#define OWN_EVENTS_LANE_BITS   6
#define OWN_EVENTS_BUCKET_BITS 12
struct own_events_lane {
	_Atomic uint64_t calls;
} __attribute__((aligned(CACHE_LINE_BYTES)));
struct own_event;
extern struct own_events_lane own_events_lanes[1 << OWN_EVENTS_LANE_BITS];
extern struct own_event *_Atomic own_events_buckets[1 << OWN_EVENTS_BUCKET_BITS];

extern _Atomic uint32_t own_events_count;

/* Whether there are any. */
static inline bool own_events_are_any(void)
{
	/* relaxed: one that is not seen yet is in no use before this call */
	return atomic_load_explicit(&own_events_count, memory_order_relaxed) > 0;
}

bool own_events_has_slowly(CUevent event);

/* Whether the event is the library's. */
static inline bool own_events_has(CUevent event)
{
	uint32_t place = hash_place((uintptr_t)event, OWN_EVENTS_BUCKET_BITS);

	/* In the one order of all such accesses: pairs with put_in(), after the call was counted. The pointer is not followed. */
	return UNLIKELY(atomic_load(&own_events_buckets[place])) && own_events_has_slowly(event);
}

/* Around a call of the program's by which an event changes; false: it is the library's. Left in both cases. */
static inline bool own_events_enter(CUevent event)
{
	/* in the one order of all such accesses: pairs with is_untouched() */
	atomic_fetch_add(
		&own_events_lanes[hash_place((uintptr_t)event, OWN_EVENTS_LANE_BITS)].calls,
		(UINT64_C(1) << 32) + 1);
	return !own_events_has(event);
}

static inline void own_events_leave(CUevent event)
{
	/* pairs with is_untouched(): what the call did comes before the event is used */
	atomic_fetch_sub_explicit(
		&own_events_lanes[hash_place((uintptr_t)event, OWN_EVENTS_LANE_BITS)].calls, 1,
		memory_order_release);
}

/* The result of such a call, or the refusal. */
#define OWN_EVENTS_CALL(event, call)                          \
	({                                                    \
		CUresult result_ = CUDA_ERROR_INVALID_HANDLE; \
                                                              \
		if (LIKELY(own_events_enter(event)))          \
			result_ = (call);                     \
		own_events_leave(event);                      \
		result_;                                      \
	})

/* Before an event is put into a graph, which may record it at any time; false: it is the library's. */
bool own_events_bind(CUevent event) MUST_CHECK;

/* The same in the driver's words. */
static inline CUresult own_events_prepare(CUevent event)
{
	return own_events_bind(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/*
 * Around a call by which the driver gives the program an event: last is own_events_last() from before. False: the library was given that
 * handle meanwhile, too, and nothing tells whose it is; nobody may use or destroy it.
 */
uint64_t own_events_last(void);
bool own_events_give(CUevent event, uint64_t last) MUST_CHECK;

/* For a child of fork(). */
void own_events_reset_after_fork(void);
