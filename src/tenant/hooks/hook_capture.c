/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: the beginnings of stream capture. */
#include "tenant/driver/capture.h"
#include "tenant/hooks/hook.h"

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
