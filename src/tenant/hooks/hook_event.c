/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: events, of which the library's own are unknown to the program (driver/own_events.h). */
#include "tenant/hooks/hook.h"
#include "tenant/driver/own_events.h"

/* A call by which the driver gives the program an event. One that may be the library's, too, is left to nobody. */
#define GIVE(event, call)                                                              \
	{                                                                              \
		CUevent made = NULL;                                                   \
		uint64_t last;                                                         \
		CUresult r;                                                            \
                                                                                       \
		do {                                                                   \
			last = own_events_last();                                      \
			r = (call);                                                    \
		} while (r == CUDA_SUCCESS && UNLIKELY(!own_events_give(made, last))); \
		return HOOK_GIVE(r, event, made);                                      \
	}

HOOK_BODY(cuEventCreate, CUevent *, event, unsigned int, flags)
GIVE(event, cuda.cuEventCreate(event ? &made : NULL, flags))

HOOK_BODY(cuIpcOpenEventHandle, CUevent *, event, CUipcEventHandle, handle)
GIVE(event, cuda.cuIpcOpenEventHandle(event ? &made : NULL, handle))

/* None of the library's, which may have its handle once more then. */
HOOK_FORMS(cuEventDestroy, _v2, CUevent, event)
{
	return OWN_EVENTS_CALL(event, real(event));
}

/* None of the library's. */
HOOK_FORMS(cuEventRecord, _ptsz, CUevent, event, CUstream, stream)
{
	return OWN_EVENTS_CALL(event, real(event, stream));
}

/* In a stream that is captured, an external record is one of the graph's. */
HOOK_FORMS(cuEventRecordWithFlags, _ptsz, CUevent, event, CUstream, stream, unsigned int, flags)
{
	if (flags != CU_EVENT_RECORD_DEFAULT && !own_events_bind(event))
		return CUDA_ERROR_INVALID_HANDLE;
	return OWN_EVENTS_CALL(event, real(event, stream, flags));
}

HOOK_BODY(cuCtxRecordEvent, CUcontext, context, CUevent, event)
{
	return OWN_EVENTS_CALL(event, cuda.cuCtxRecordEvent(context, event));
}

HOOK_BODY(cuGreenCtxRecordEvent, CUgreenCtx, green, CUevent, event)
{
	return OWN_EVENTS_CALL(event, cuda.cuGreenCtxRecordEvent(green, event));
}

/* Who has the handle may record the event in another process. */
HOOK_BODY(cuIpcGetEventHandle, CUipcEventHandle *, handle, CUevent, event)
{
	return OWN_EVENTS_CALL(event, cuda.cuIpcGetEventHandle(handle, event));
}

HOOK_BODY(cuGraphAddEventRecordNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, CUevent, event)
{
	return own_events_bind(event)
		       ? cuda.cuGraphAddEventRecordNode(node, graph, dependencies, count, event)
		       : CUDA_ERROR_INVALID_HANDLE;
}

HOOK_BODY(cuGraphEventRecordNodeSetEvent, CUgraphNode, node, CUevent, event)
{
	return own_events_bind(event) ? cuda.cuGraphEventRecordNodeSetEvent(node, event)
				      : CUDA_ERROR_INVALID_HANDLE;
}

HOOK_BODY(cuGraphExecEventRecordNodeSetEvent, CUgraphExec, exec, CUgraphNode, node, CUevent, event)
{
	return own_events_bind(event) ? cuda.cuGraphExecEventRecordNodeSetEvent(exec, node, event)
				      : CUDA_ERROR_INVALID_HANDLE;
}
