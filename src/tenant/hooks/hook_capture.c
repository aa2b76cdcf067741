/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginnings and the end of stream capture, and what makes a stream join one. */
#include "tenant/compute/gate.h"
#include "tenant/driver/capture.h"
#include "tenant/hooks/hook.h"

#define BEGIN(...)                                     \
	{                                              \
		CUresult r;                            \
                                                       \
		gate_capture_begins(stream);           \
		capture_begin_begins();                \
		r = real(__VA_ARGS__);                 \
		capture_begin_ends(r == CUDA_SUCCESS); \
		return r;                              \
	}

HOOK_FORMS(cuStreamBeginCapture, _ptsz, CUstream, stream)
BEGIN(stream)

HOOK_FORMS(cuStreamBeginCapture_v2, _ptsz, CUstream, stream, CUstreamCaptureMode, mode)
BEGIN(stream, mode)

HOOK_FORMS(cuStreamBeginCaptureToGraph, _ptsz, CUstream, stream, CUgraph, graph,
	const CUgraphNode *, dependencies, const CUgraphEdgeData *, edges, size_t, count,
	CUstreamCaptureMode, mode)
BEGIN(stream, graph, dependencies, edges, count, mode)

HOOK_FORMS(cuStreamEndCapture, _ptsz, CUstream, stream, CUgraph *, graph)
{
	bool was_on = capture_is_on(stream);
	CUresult r = CAPTURE_CHANGE(CUDA_ERROR_NOT_READY, real(stream, graph));

	/* Whatever the driver answers: a capture that failed before ends with an error. */
	if (was_on && !capture_is_on(stream))
		capture_ended();
	return r;
}

HOOK_FORMS(cuStreamWaitEvent, _ptsz, CUstream, stream, CUevent, event, unsigned int, flags)
{
	struct capture_join join;
	CUresult r;

	gate_event(stream, event);
	capture_join_begins(&join);
	r = real(stream, event, flags);
	capture_join_ends(&join, stream);
	return r;
}
