/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginnings of stream capture. */
#include "tenant/driver/capture.h"
#include "tenant/hooks/hook.h"

HOT_WORD _Atomic bool capture_was_begun;

bool capture_is_on_slowly(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda.cuStreamIsCapturing &&
	       cuda.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static void note_begin(void)
{
	/* relaxed: see capture_is_on() */
	atomic_store_explicit(&capture_was_begun, true, memory_order_relaxed);
}

HOOK_FORMS(cuStreamBeginCapture, _ptsz, CUstream, stream)
{
	note_begin();
	return real(stream);
}

HOOK_FORMS(cuStreamBeginCapture_v2, _ptsz, CUstream, stream, CUstreamCaptureMode, mode)
{
	note_begin();
	return real(stream, mode);
}

HOOK_FORMS(cuStreamBeginCaptureToGraph, _ptsz, CUstream, stream, CUgraph, graph,
	const CUgraphNode *, dependencies, const CUgraphEdgeData *, edges, size_t, count,
	CUstreamCaptureMode, mode)
{
	note_begin();
	return real(stream, graph, dependencies, edges, count, mode);
}
