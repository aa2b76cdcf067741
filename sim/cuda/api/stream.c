/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of streams. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/green.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/work.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/time/callback.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult create(
	struct context *context, CUstream *ret_stream, unsigned int flags, int priority)
{
	struct stream *stream;
	CUresult result;

	if (!ret_stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_new_stream(context, flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*ret_stream = (CUstream)stream;
	return result;
}

ENTRY_CALL_CURRENT(cuStreamCreate, (CUstream * stream, unsigned int flags),
	create(entry.context, stream, flags, 0))

ENTRY_CURRENT(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
	(stream, flags, priority))
{
	/* Beyond the range it is taken to the nearest, which is no error. */
	return create(context, stream, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
}

ENTRY_BODY(cuStreamDestroy, (CUstream handle), (handle))
{
	struct stream *stream;
	CUresult result;

	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	result = context_stream(handle, false, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* Its work goes on without it; its callbacks must find it. */
	callback_wait(stream->context, stream);
	context_free_stream(stream);
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuStreamDestroy_v2, (CUstream stream), cuStreamDestroy_body(stream))

ENTRY_STREAM(cuStreamSynchronize, _ptsz, handle, (CUstream handle), (handle))
{
	if (capture_is_on(stream))
		return capture_forbid(stream);
	callback_wait_all(stream->context, stream);
	pool_collect(stream->context->device);
	array_collect();
	heap_collect();
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamQuery, _ptsz, handle, (CUstream handle), (handle))
{
	if (capture_is_on(stream))
		return capture_forbid(stream);
	return timeline_is_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

ENTRY_STREAM(cuStreamWaitEvent, _ptsz, handle,
	(CUstream handle, CUevent event_handle, unsigned int flags), (handle, event_handle, flags))
{
	struct event *event = timeline_find_event(event_handle);
	struct schedule_point point;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_EVENT_WAIT_DEFAULT &&
		(capture_is_on(stream) || captured_by(&event->captured)))
		return capture_wait(stream, event);
	if (timeline_is_elsewhere(event, &point)) {
		timeline_hold_for(stream, &point);
		return CUDA_SUCCESS;
	}
	timeline_hold(stream, timeline_carry(event->context->device, stream->context->device,
				      timeline_event_ns(event)));
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamGetCtx, _ptsz, handle, (CUstream handle, CUcontext *ret_context),
	(handle, ret_context))
{
	struct green *of;

	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	of = green_of_stream(handle, stream);
	*ret_context = (CUcontext)(of ? of->context : stream->context);
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamGetCtx_v2, _ptsz, handle,
	(CUstream handle, CUcontext *ret_context, CUgreenCtx *green), (handle, ret_context, green))
{
	struct green *of;

	if (!ret_context || !green)
		return CUDA_ERROR_INVALID_VALUE;
	of = green_of_stream(handle, stream);
	*ret_context = of ? NULL : (CUcontext)stream->context;
	*green = (CUgreenCtx)of;
	return CUDA_SUCCESS;
}

ENTRY_STREAM(
	cuStreamGetFlags, _ptsz, handle, (CUstream handle, unsigned int *flags), (handle, flags))
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = stream->flags;
	return CUDA_SUCCESS;
}

ENTRY_STREAM(
	cuStreamGetPriority, _ptsz, handle, (CUstream handle, int *priority), (handle, priority))
{
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = stream->priority;
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamGetId, _ptsz, handle, (CUstream handle, unsigned long long *id), (handle, id))
{
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = stream->is_legacy ? 1 : stream->id;
	return CUDA_SUCCESS;
}

ENTRY_STREAM(
	cuStreamGetDevice, _ptsz, handle, (CUstream handle, CUdevice *device), (handle, device))
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = stream->context->device->ordinal;
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamAddCallback, _ptsz, handle,
	(CUstream handle, CUstreamCallback callback, void *user_data, unsigned int flags),
	(handle, callback, user_data, flags))
{
	if (!callback || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_is_on(stream))
		return capture_forbid(stream);
	return callback_add(stream, NULL, callback, user_data, handle);
}

ENTRY_STREAM(cuLaunchHostFunc, _ptsz, handle, (CUstream handle, CUhostFn fn, void *user_data),
	(handle, fn, user_data))
{
	struct work work = work_of(CU_GRAPH_NODE_TYPE_HOST);

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	work.host = (CUDA_HOST_NODE_PARAMS){fn, user_data};
	if (capture_is_on(stream))
		return capture_add(stream, &work);
	return callback_add(stream, fn, NULL, user_data, handle);
}
