/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a stream is being captured: what is allocated on it then belongs to a graph, and nothing that
 * is launched on it runs. Asked on every stream-ordered allocation, so a process that never captures is
 * not asked about.
 *
 * Another thread may begin or end a capture between the answer and the call that it is wanted for. So a call that takes no
 * memory where it is captured stands between capture_enter() and capture_leave():
 *
 *   - A call that was found captured is captured. Until it has left, no capture is ended, and no stream or context is made,
 *     which could come in the place of one that was destroyed (capture_change_begin()).
 *   - A call that was not is told afterwards whether it may have been captured after all (has_run): by a capture that began
 *     meanwhile, or that its stream has joined.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

/* Set before the driver is asked to begin a capture, and never taken back. */
extern _Atomic bool capture_was_begun;

bool capture_is_on_slowly(CUstream stream);

static inline bool capture_is_on(CUstream stream)
{
	/* relaxed: a thread that uses a captured stream has been told by the one that began */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	return capture_is_on_slowly(stream);
}

/*
 * Which capture takes what is launched on the stream; 0: none does, CAPTURE_UNKNOWN: one does that the driver does not tell
 * from others. Another thread may end it at any time: work was taken by it where the same one is on before and after.
 */
#define CAPTURE_UNKNOWN UINT64_MAX
uint64_t capture_find_slowly(CUstream stream);

struct capture_call {
	uint64_t begins; /* as capture_begins was */
	uint32_t joins;	 /* that were made */
	bool is_captured;
	bool has_run; /* after capture_leave(): surely not captured. A call that was not made has not. */
};

/* Its lower half: begins that the driver is being asked for. Its upper half: begins so far. */
extern _Atomic uint64_t capture_begins;
/* Its lower half: joins that the driver is being asked for. Its upper half: those that may have made a stream captured. */
extern _Atomic uint64_t capture_joins;

void capture_enter_slowly(CUstream stream, struct capture_call *ret_call);
void capture_leave_slowly(struct capture_call *call);
/* Whether no stream has joined a capture since. */
bool capture_is_unjoined(uint32_t joins);

#define CAPTURE_WAIT_NS UINT64_C(10000000000)

/*
 * Not captured is also said where another thread is at a change for longer than CAPTURE_WAIT_NS: more is reserved then than is
 * necessary.
 */
static inline void capture_enter(CUstream stream, struct capture_call *ret_call)
{
	*ret_call = (struct capture_call){.begins = atomic_load(&capture_begins),
		.joins = (uint32_t)(atomic_load(&capture_joins) >> 32)};
	/* relaxed: as above */
	if (UNLIKELY(atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		capture_enter_slowly(stream, ret_call);
}

static inline void capture_leave(struct capture_call *call)
{
	/* pairs with capture_begin_begins(): a begin after the look is counted, one that goes on is seen */
	call->has_run = !call->is_captured && (uint32_t)call->begins == 0 &&
			call->begins == atomic_load(&capture_begins) &&
			/* relaxed: who was captured has been told by the driver of who began */
			(LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)) ||
				capture_is_unjoined(call->joins));
	if (UNLIKELY(call->is_captured))
		capture_leave_slowly(call);
}

/*
 * Whether a capture of any stream may be under way in the process, also one that nobody ends: no
 * event of a whole context is to be had then.
 */
bool capture_may_be_on_slowly(void);
static inline bool capture_may_be_on(void)
{
	/* relaxed: as above */
	return UNLIKELY(atomic_load_explicit(&capture_was_begun, memory_order_relaxed)) &&
	       capture_may_be_on_slowly();
}

/* Around the driver's call that begins a capture; and one has ended. */
void capture_begin_begins(void);
void capture_begin_ends(bool is_begun);
void capture_ended(void);

/*
 * Around a driver's call that breaks captures. false: one may be under way in the process, and the driver must not be asked. Else a begin of
 * another thread waits for the second, CAPTURE_HELD_NS at most.
 */
bool capture_hold_off_begins(void) MUST_CHECK;
void capture_let_begins(void);
#define CAPTURE_HELD_NS UINT64_C(1000000)

/*
 * Around the driver's call by which a stream waits for an event. Where that is of a capture the stream joins it, and is
 * captured until the capture ends.
 */
struct capture_join {
	uint64_t changes; /* begun so far */
	bool is_unsure;	  /* one was under way */
};
void capture_join_begins(struct capture_join *ret_join);
void capture_join_ends(const struct capture_join *join, CUstream stream);

/*
 * Around a driver's call after which a stream that was captured may not be: no call is captured meanwhile. false: a captured
 * call of another thread has not left for CAPTURE_WAIT_NS, and the driver must not be asked. Also in a process that has begun
 * no capture: the call may last until one has begun. Taken before any other lock: a captured call may wait for those.
 */
bool capture_change_begin(void) MUST_CHECK;
void capture_change_end(void);

/*
 * Between the two no stream or context is made, so what a stream's handle stands for, if anything, is the same stream. false: a change
 * of another thread has gone on for CAPTURE_WAIT_NS, and nothing is held off.
 */
bool capture_hold_off_changes(void) MUST_CHECK;
void capture_let_changes(void);

/* The result of a call as such a change, or the refusal. */
#define CAPTURE_CHANGE(refusal, call)         \
	({                                    \
		CUresult result_ = (refusal); \
                                              \
		if (capture_change_begin()) { \
			result_ = (call);     \
			capture_change_end(); \
		}                             \
		result_;                      \
	})

/* For a child of fork(). */
void capture_reset_after_fork(void);

static inline uint64_t capture_find(CUstream stream)
{
	/* relaxed: as above */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return 0;
	return capture_find_slowly(stream);
}
