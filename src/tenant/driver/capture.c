/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a stream is being captured. */
#include "tenant/driver/capture.h"

#include "tenant/driver/attach.h"

HOT_WORD _Atomic bool capture_was_begun;

bool capture_is_on_slowly(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda.cuStreamIsCapturing &&
	       cuda.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

uint64_t capture_find_slowly(CUstream stream)
{
	CUstreamCaptureStatus status;
	cuuint64_t id = 0;

	if (!capture_is_on_slowly(stream))
		return 0;
	if (!cuda.cuStreamGetCaptureInfo ||
		cuda.cuStreamGetCaptureInfo(stream, &status, &id) != CUDA_SUCCESS || !id)
		return CAPTURE_UNKNOWN;
	return id;
}
