/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture and graphs: not simulated yet, so nothing ever captures. */
#include "sim/cuda/context.h"
#include "sim/cuda/entry.h"

ENTRY_FORMS(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus *status),
	(handle, status))
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (status == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

ENTRY_FORMS(
	cuStreamBeginCapture_v2, _ptsz, (CUstream handle, CUstreamCaptureMode mode), (handle, mode))
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result;
}

ENTRY_FORMS(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph *graph), (handle, graph))
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	return result == CUDA_SUCCESS ? CUDA_ERROR_ILLEGAL_STATE : result;
}

ENTRY_FORMS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream handle), (exec, handle))
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY_BODY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
	static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstreamCaptureMode wanted;

	if (mode == NULL || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	wanted = *mode;
	*mode = current;
	current = wanted;
	return CUDA_SUCCESS;
}
