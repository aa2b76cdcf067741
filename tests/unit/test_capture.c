/* SPDX-License-Identifier: Apache-2.0 */
/* Captured calls, and what ends and begins captures, by threads at once; the driver is the test's own. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "tenant/driver/attach.h"
#include "tenant/driver/capture.h"
#include "tests/unit/cmocka_ready.h"

#define CALLERS 3
#define CALLS	300 /* of each kind, at least */
#define STREAM	((CUstream)8)

struct cuda_driver cuda;

static _Atomic bool is_capturing, is_over;
static _Atomic uint32_t captured, uncaptured; /* calls */
static _Atomic uint32_t faults;

static CUresult is_stream_capturing(CUstream stream, CUstreamCaptureStatus *ret_status)
{
	*ret_status = atomic_load(&is_capturing) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						 : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* What was found captured is captured, and what is said to have run was not. */
static void *call_often(void *unused)
{
	while (!atomic_load(&is_over)) {
		struct capture_call call;
		bool was_found, is_taken;

		capture_enter(STREAM, &call);
		was_found = call.is_captured;
		sched_yield(); /* the driver's time */
		is_taken = atomic_load(&is_capturing);
		capture_leave(&call);
		if ((was_found && !is_taken) || (call.has_run && is_taken))
			atomic_fetch_add(&faults, 1);
		atomic_fetch_add(was_found ? &captured : &uncaptured, 1);
	}
	return unused;
}

static void change_often(void **state)
{
	pthread_t callers[CALLERS];

	for (unsigned i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, call_often, NULL), 0);
	while (atomic_load(&captured) < CALLS || atomic_load(&uncaptured) < CALLS) {
		capture_begin_begins();
		atomic_store(&is_capturing, true);
		capture_begin_ends(false);
		assert_true(capture_change_begin());
		sched_yield(); /* a caller comes just now */
		atomic_store(&is_capturing, false);
		capture_change_end();
	}
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	assert_int_equal(atomic_load(&faults), 0);
}

static void nothing_is_asked_before_a_capture(void **state)
{
	struct capture_call call;

	atomic_store(&is_capturing, true); /* as the driver would say, if it were asked */
	capture_enter(STREAM, &call);
	assert_false(call.is_captured);
	capture_leave(&call);
	assert_true(call.has_run);
	atomic_store(&is_capturing, false);
}

static void begin_under_way_is_no_proof(void **state)
{
	struct capture_call call;

	capture_begin_begins();
	capture_enter(STREAM, &call);
	capture_begin_ends(false);
	capture_leave(&call);
	assert_false(call.has_run);
	capture_enter(STREAM, &call);
	capture_begin_begins();
	capture_leave(&call);
	capture_begin_ends(false);
	assert_false(call.has_run);
	capture_enter(STREAM, &call);
	capture_leave(&call);
	assert_true(call.has_run);
}

/* Whatever breaks captures: never beside one that is under way, or is about to be. */
static void what_breaks_captures_is_held_back(void **state)
{
	assert_true(capture_hold_off_begins());
	capture_let_begins();
	capture_begin_begins();
	assert_false(capture_hold_off_begins());
	capture_begin_ends(false);
	assert_true(capture_hold_off_begins());
	capture_let_begins();
	for (unsigned i = 0; i < 2; i++) {
		capture_begin_begins();
		capture_begin_ends(true);
	}
	capture_ended();
	assert_false(capture_hold_off_begins());
	capture_ended();
	assert_true(capture_hold_off_begins());
	/* A begin waits for it, and not for long. */
	capture_begin_begins();
	capture_begin_ends(false);
	capture_let_begins();
	/* One that nobody saw begin. */
	capture_ended();
	assert_true(capture_hold_off_begins());
	capture_let_begins();
}

/* Between begin and end the driver has made the stream wait for an event of a capture, or not. */
static void join_meanwhile_is_no_proof(void **state)
{
	struct capture_call call;
	struct capture_join join;

	capture_begin_begins();
	capture_begin_ends(false);
	capture_enter(STREAM, &call);
	capture_join_begins(&join);
	atomic_store(&is_capturing, true);
	capture_join_ends(&join, STREAM);
	capture_leave(&call);
	assert_false(call.has_run);
	/* One that has ended again. */
	atomic_store(&is_capturing, false);
	capture_enter(STREAM, &call);
	capture_join_begins(&join);
	assert_true(capture_change_begin());
	capture_change_end();
	capture_join_ends(&join, STREAM);
	capture_leave(&call);
	assert_false(call.has_run);
	/* One that goes on may have been one. */
	capture_enter(STREAM, &call);
	capture_join_begins(&join);
	capture_leave(&call);
	assert_false(call.has_run);
	capture_join_ends(&join, STREAM);
	/* No captured stream was there to wait for. */
	capture_enter(STREAM, &call);
	capture_join_begins(&join);
	capture_join_ends(&join, STREAM);
	capture_leave(&call);
	assert_true(call.has_run);
}

static _Atomic bool is_changed;

static void *change_once(void *unused)
{
	assert_true(capture_change_begin());
	atomic_store(&is_changed, true);
	capture_change_end();
	return unused;
}

static void nothing_changes_while_changes_are_held_off(void **state)
{
	pthread_t thread;

	assert_true(capture_hold_off_changes());
	assert_int_equal(pthread_create(&thread, NULL, change_once, NULL), 0);
	usleep(20000);
	assert_false(atomic_load(&is_changed));
	capture_let_changes();
	pthread_join(thread, NULL);
	assert_true(atomic_load(&is_changed));
}

/* The thread that held it is not in the child. */
static void child_begins_anew(void **state)
{
	struct capture_call call;

	atomic_store(&is_capturing, true);
	capture_enter(STREAM, &call);
	assert_true(call.is_captured);
	capture_reset_after_fork();
	assert_true(capture_change_begin());
	capture_change_end();
	atomic_store(&is_capturing, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_asked_before_a_capture),
		cmocka_unit_test(begin_under_way_is_no_proof),
		cmocka_unit_test(what_breaks_captures_is_held_back),
		cmocka_unit_test(join_meanwhile_is_no_proof),
		cmocka_unit_test(change_often),
		cmocka_unit_test(nothing_changes_while_changes_are_held_off),
		cmocka_unit_test(child_begins_anew),
	};

	cuda.cuStreamIsCapturing = is_stream_capturing;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
