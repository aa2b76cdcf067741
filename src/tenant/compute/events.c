/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the driver about a stream and its events. */
#include "tenant/compute/events.h"

#include <stddef.h>

#include "tenant/driver/attach.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"

CUcontext events_context_of(CUstream stream)
{
	CUcontext context = NULL;

	if (!cuda.cuStreamGetCtx || cuda.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS)
		return NULL;
	return context;
}

/* A thread that captures in the global mode forbids questions to the driver, ours as well. */
static bool enter_relaxed(CUstreamCaptureMode *ret_mode)
{
	/* relaxed: see capture_is_on() */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	*ret_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	return cuda.cuThreadExchangeStreamCaptureMode &&
	       cuda.cuThreadExchangeStreamCaptureMode(ret_mode) == CUDA_SUCCESS;
}

static void leave_relaxed(bool is_exchanged, CUstreamCaptureMode mode)
{
	if (is_exchanged)
		cuda.cuThreadExchangeStreamCaptureMode(&mode);
}

/*
 * A stream that is being captured, perhaps because it waits for an event of another one, would make our
 * event a part of the program's graph.
 */
static bool may_be_captured(CUstream stream)
{
	CUstreamCaptureStatus status;

	/* relaxed: see capture_is_on() */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	return !cuda.cuStreamIsCapturing ||
	       cuda.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * Whether work may be under way, by the driver's answer. It refuses to answer within a callback of the program's, or
 * while the thread captures; any other error is one of a context that is broken or gone, where nothing runs.
 */
static bool may_run(CUresult r)
{
	return r == CUDA_ERROR_NOT_READY || r == CUDA_ERROR_NOT_PERMITTED ||
	       (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		       r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

bool events_is_idle(CUcontext context, CUstream stream)
{
	bool is_entered = current_enter(context), is_exchanged;
	CUresult r = CUDA_ERROR_NOT_READY;
	CUstreamCaptureMode mode;

	if (!may_be_captured(stream)) {
		is_exchanged = enter_relaxed(&mode);
		r = cuda.cuStreamQuery(stream);
		leave_relaxed(is_exchanged, mode);
	}
	current_leave(is_entered);
	return !may_run(r);
}

CUresult events_query(CUevent event)
{
	CUstreamCaptureMode mode;
	bool is_exchanged = enter_relaxed(&mode);
	CUresult r = cuda.cuEventQuery(event);

	leave_relaxed(is_exchanged, mode);
	return may_run(r) ? CUDA_ERROR_NOT_READY : r;
}

enum events_answer events_record(CUcontext context, CUstream stream, CUevent *event)
{
	bool is_entered = current_enter(context), is_exchanged;
	enum events_answer answer = EVENTS_CAPTURED;
	CUstreamCaptureMode mode;

	if (!may_be_captured(stream)) {
		is_exchanged = enter_relaxed(&mode);
		answer = (*event || own_events_create(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
					 cuda.cuEventRecord(*event, stream) == CUDA_SUCCESS
				 ? EVENTS_RECORDED
				 : EVENTS_REFUSED;
		leave_relaxed(is_exchanged, mode);
	}
	current_leave(is_entered);
	return answer;
}

bool events_know_contexts(void)
{
	return cuda.cuCtxRecordEvent != NULL;
}

bool events_record_in_context(CUcontext context, CUevent *event)
{
	bool is_entered, is_recorded;

	/* The driver breaks the captures of the context's streams. */
	if (!context || !events_know_contexts() || !capture_hold_off_begins())
		return false;
	is_entered = current_enter(context);
	is_recorded = (*event || own_events_create(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
		      cuda.cuCtxRecordEvent(context, *event) == CUDA_SUCCESS;
	current_leave(is_entered);
	capture_let_begins();
	return is_recorded;
}

bool events_is_dead(CUcontext context)
{
	bool is_entered = current_enter(context), is_exchanged;
	CUcontext current = NULL;
	CUresult r = CUDA_ERROR_NOT_READY;
	CUstreamCaptureMode mode;

	if (context && cuda.cuCtxGetCurrent && cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS) {
		is_exchanged = enter_relaxed(&mode);
		r = current == context ? cuda.cuStreamQuery(CU_STREAM_LEGACY)
				       : CUDA_ERROR_INVALID_CONTEXT;
		leave_relaxed(is_exchanged, mode);
	}
	current_leave(is_entered);
	return r != CUDA_SUCCESS && !may_run(r);
}

bool events_distance(CUevent from, CUevent to, int64_t *ret_ns)
{
	float ms;

	if (cuda.cuEventElapsedTime(&ms, from, to) != CUDA_SUCCESS)
		return false;
	*ret_ns = (int64_t)((double)ms * 1e6);
	return true;
}
