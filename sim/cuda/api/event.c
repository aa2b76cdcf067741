/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of events: points of a stream's virtual time, and of the time on the wall. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/time/timeline.h"

ENTRY_CURRENT(cuEventCreate, (CUevent * ret_event, unsigned int flags), (ret_event, flags))
{
	struct event *event;

	if (!ret_event || flags > 7 ||
		((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0))
		return CUDA_ERROR_INVALID_VALUE;
	event = timeline_new_event(context, flags);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_event = (CUevent)event;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuEventDestroy, (CUevent handle), (handle))
{
	struct event *event = timeline_find_event(handle);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	capture_leave(&event->captured, false);
	timeline_free_event(event);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuEventDestroy_v2, (CUevent event), cuEventDestroy_body(event))

static CUresult record(struct stream *stream, CUevent handle, unsigned int flags)
{
	struct work work = work_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	struct event *event = timeline_find_event(handle);

	if (!event || event->context != stream->context)
		return CUDA_ERROR_INVALID_HANDLE;
	work.event = handle;
	if (capture_is_on(stream))
		return flags == CU_EVENT_RECORD_EXTERNAL ? capture_add(stream, &work)
							 : capture_record(stream, event);
	capture_leave(&event->captured, false);
	timeline_mark(event, timeline_ready_ns(stream, timeline_now(stream->context->device)));
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuEventRecord, _ptsz, handle, (CUevent event, CUstream handle), (event, handle))
{
	return record(stream, event, CU_EVENT_RECORD_DEFAULT);
}

ENTRY_FORMS(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream handle, unsigned int flags),
	(event, handle, flags))
{
	struct stream *stream;
	CUresult result;

	if (flags > CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_stream(handle, is_thread, &stream);
	return result == CUDA_SUCCESS ? record(stream, event, flags) : result;
}

ENTRY_BODY(cuEventQuery, (CUevent handle), (handle))
{
	struct event *event = timeline_find_event(handle);
	struct schedule_point point;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (captured_by(&event->captured))
		return CUDA_ERROR_CAPTURED_EVENT;
	if (timeline_is_elsewhere(event, &point)
			? !schedule_is_past(driver.machine, &point)
			: timeline_event_ns(event) > timeline_now(event->context->device))
		return CUDA_ERROR_NOT_READY;
	array_collect();
	heap_collect();
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuEventSynchronize, (CUevent handle), (handle))
{
	struct event *event = timeline_find_event(handle);
	struct schedule_point point;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (captured_by(&event->captured))
		return CUDA_ERROR_CAPTURED_EVENT;
	if (timeline_is_elsewhere(event, &point))
		timeline_sleep_for(event->context, &point);
	else
		timeline_sleep_until(event->context, timeline_event_ns(event));
	pool_collect_event(event->context->device);
	array_collect();
	heap_collect();
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuEventElapsedTime, (float *ms, CUevent start_handle, CUevent end_handle),
	(ms, start_handle, end_handle))
{
	struct event *start = timeline_find_event(start_handle),
		     *end = timeline_find_event(end_handle);
	uint64_t from, to;

	if (!start || !end)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (timeline_event_ns(start) == 0 || timeline_event_ns(end) == 0 ||
		(start->flags & CU_EVENT_DISABLE_TIMING) != 0 ||
		(end->flags & CU_EVENT_DISABLE_TIMING) != 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!timeline_place(start, &from) || !timeline_place(end, &to))
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(int64_t)(to - from) / 1e6);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end),
	cuEventElapsedTime_body(ms, start, end))
