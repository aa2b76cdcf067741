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

HOOK_BODY(cuStreamBeginCapture, CUstream stream)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCapture(stream);
}

HOOK_BODY(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCapture_v2(stream, mode);
}

HOOK_BODY(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUstreamCaptureMode mode)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode);
}

HOOK_BODY(cuStreamBeginCapture_ptsz, CUstream stream)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCapture_ptsz(stream);
}

HOOK_BODY(cuStreamBeginCapture_v2_ptsz, CUstream stream, CUstreamCaptureMode mode)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCapture_v2_ptsz(stream, mode);
}

HOOK_BODY(cuStreamBeginCaptureToGraph_ptsz, CUstream stream, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUstreamCaptureMode mode)
{
	if (!hook_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	note_begin();
	return cuda.cuStreamBeginCaptureToGraph_ptsz(
		stream, graph, dependencies, edges, count, mode);
}
