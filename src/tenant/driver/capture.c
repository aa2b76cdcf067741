/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a stream is being captured.
 *
 * There is never a captured call beside a change; calls may be beside each other, and so may changes. Each kind is counted in a
 * word of its own, and each counts itself before it reads the other's word. A change waits until there are no calls. A call that
 * finds a change uncounts itself and waits, so changes are not kept waiting by calls that follow each other.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/driver/capture.h"

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"

#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"

HOT_WORD _Atomic bool capture_was_begun;
HOT_WORD _Atomic uint64_t capture_begins;
HOT_WORD _Atomic uint64_t capture_joins;

/* Between enter and leave, or on their way back; and those that hold changes off. */
static _Atomic uint32_t captured_calls;
static _Atomic uint32_t changes; /* between begin and end */
static _Atomic uint64_t changes_begun;

/* Captures that were begun and not seen to end, as one whose stream was destroyed; and those that hold begins off. */
static _Atomic uint32_t under_way;
static _Atomic uint32_t begins_held;

#define ONE_BEGIN ((UINT64_C(1) << 32) + 1)
#define ONE_JOIN  (UINT64_C(1) << 32)

/* Longest wait for another thread that lets a stream wait for an event. */
#define JOIN_WAIT_NS UINT64_C(1000000)

void capture_begin_begins(void)
{
	/* pairs with the loads in capture_leave() and capture_hold_off_begins() */
	atomic_fetch_add(&capture_begins, ONE_BEGIN);
	/* relaxed: see capture_is_on() */
	atomic_store_explicit(&capture_was_begun, true, memory_order_relaxed);
	/* pairs with capture_hold_off_begins(): one of the two sees the other */
	if (atomic_load(&begins_held)) {
		struct patience patience = patience_begin(CAPTURE_HELD_NS);

		(void)patience_wait_for_zero(&begins_held, &patience);
	}
}

void capture_begin_ends(bool is_begun)
{
	/* In this order: one of the two words tells of it. Both pair with capture_hold_off_begins(). */
	if (is_begun)
		atomic_fetch_add(&under_way, 1);
	atomic_fetch_sub(&capture_begins, 1);
}

void capture_ended(void)
{
	uint32_t count = atomic_load(&under_way);

	/* pairs with the load in capture_hold_off_begins() */
	while (count && !atomic_compare_exchange_weak(&under_way, &count, count - 1))
		;
}

bool capture_may_be_on_slowly(void)
{
	/* pairs with capture_begin_begins() and capture_begin_ends() */
	return (uint32_t)atomic_load(&capture_begins) || atomic_load(&under_way);
}

bool capture_hold_off_begins(void)
{
	/* pairs with the load in capture_begin_begins() */
	atomic_fetch_add(&begins_held, 1);
	if (!capture_may_be_on_slowly())
		return true;
	capture_let_begins();
	return false;
}

void capture_let_begins(void)
{
	/* pairs with the load in capture_begin_begins() */
	atomic_fetch_sub(&begins_held, 1);
}

bool capture_is_on_slowly(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda.cuStreamIsCapturing &&
	       cuda.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

uint64_t capture_find_slowly(CUstream stream)
{
	CUstreamCaptureStatus status;
	cuuint64_t id = 0;

	if (!capture_is_on_slowly(stream))
		return 0;
	if (!cuda.cuStreamGetCaptureInfo ||
		cuda.cuStreamGetCaptureInfo(stream, &status, &id) != CUDA_SUCCESS || !id)
		return CAPTURE_UNKNOWN;
	return id;
}

/* false: a change goes on for too long. */
static bool count_in(void)
{
	struct patience patience = patience_begin(CAPTURE_WAIT_NS);

	for (;;) {
		/* pairs with the load in capture_change_begin(): one of the two sees the other */
		atomic_fetch_add(&captured_calls, 1);
		if (!atomic_load(&changes))
			return true;
		atomic_fetch_sub(&captured_calls, 1);
		if (!patience_wait_for_zero(&changes, &patience))
			return false;
	}
}

bool capture_hold_off_changes(void)
{
	return count_in();
}

void capture_let_changes(void)
{
	FAULT("capture: changes are let again");
	/* pairs with the load in capture_change_begin() */
	atomic_fetch_sub(&captured_calls, 1);
}

void capture_enter_slowly(CUstream stream, struct capture_call *ret_call)
{
	/* Most calls of a process that captures are not captured, and wait for nobody. */
	if (!capture_is_on_slowly(stream))
		return;
	if (!count_in()) {
		log_warn("a capture is being ended for too long, so a call is taken for one that "
			 "runs");
		return;
	}
	ret_call->is_captured = capture_is_on_slowly(stream);
	if (!ret_call->is_captured)
		atomic_fetch_sub(&captured_calls, 1);
	FAULT("capture: entered");
}

void capture_leave_slowly(struct capture_call *call)
{
	FAULT("capture: leaves");
	/* pairs with the load in capture_change_begin() */
	atomic_fetch_sub(&captured_calls, 1);
	call->is_captured = false;
}

void capture_join_begins(struct capture_join *ret_join)
{
	/* pairs with capture_is_unjoined(): a join is counted before it can be one */
	atomic_fetch_add(&capture_joins, 1);
	/* In this order: a change that is not seen as begun counts itself after the first, and before it asks the driver. */
	ret_join->changes = atomic_load(&changes_begun);
	ret_join->is_unsure = atomic_load(&changes) > 0;
}

/* Where a capture may have ended since, nothing tells whether the stream was in it. */
void capture_join_ends(const struct capture_join *join, CUstream stream)
{
	/* relaxed: see capture_leave() */
	bool may_be_one = atomic_load_explicit(&capture_was_begun, memory_order_relaxed) &&
			  (join->is_unsure || capture_is_on_slowly(stream) ||
				  join->changes != atomic_load(&changes_begun));

	/* pairs with capture_is_unjoined() */
	atomic_fetch_add(&capture_joins, may_be_one ? ONE_JOIN - 1 : UINT64_MAX);
}

bool capture_is_unjoined(uint32_t joins)
{
	uint64_t deadline_ns = clock_now_ns() + JOIN_WAIT_NS, now = atomic_load(&capture_joins);

	/* What is under way may have been one, and not have said so. */
	for (unsigned i = 0; (uint32_t)now && clock_now_ns() < deadline_ns; i++) {
		lock_rest(i);
		now = atomic_load(&capture_joins);
	}
	return (uint32_t)now == 0 && now >> 32 == joins;
}

bool capture_change_begin(void)
{
	struct patience patience = patience_begin(CAPTURE_WAIT_NS);

	/* pairs with the load in count_in() */
	atomic_fetch_add(&changes, 1);
	/* pairs with capture_join_begins(), and comes after the first */
	atomic_fetch_add(&changes_begun, 1);
	if (patience_wait_for_zero(&captured_calls, &patience))
		return true;
	capture_change_end();
	log_error("a captured call, a free in stream order, or a launch of a graph with memory, of "
		  "another thread does not return, so no capture is ended, and no stream and no "
		  "context is made");
	return false;
}

void capture_change_end(void)
{
	FAULT("capture: changed");
	atomic_fetch_sub(&changes, 1);
}

void capture_reset_after_fork(void)
{
	atomic_store(&captured_calls, 0);
	atomic_store(&changes, 0);
	atomic_store(&capture_begins, 0);
	atomic_store(&capture_joins, 0);
	atomic_store(&under_way, 0);
	atomic_store(&begins_held, 0);
}
