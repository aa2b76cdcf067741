/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing streams. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult begin(struct stream *stream, CUgraph graph_handle, bool has_graph,
	const CUgraphNode *deps, size_t count, CUstreamCaptureMode mode)
{
	struct graph *graph;

	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count > 0 && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	LOCK_SCOPE(&driver.memory_lock);
	graph = graph_check(graph_handle);
	if (has_graph && !graph)
		return CUDA_ERROR_INVALID_VALUE;
	return capture_begin(stream, graph, deps, count, mode);
}

ENTRY_STREAM(cuStreamBeginCapture, _ptsz, handle, (CUstream handle), (handle))
{
	return begin(stream, NULL, false, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

ENTRY_STREAM(cuStreamBeginCapture_v2, _ptsz, handle, (CUstream handle, CUstreamCaptureMode mode),
	(handle, mode))
{
	return begin(stream, NULL, false, NULL, 0, mode);
}

ENTRY_STREAM(cuStreamBeginCaptureToGraph, _ptsz, handle,
	(CUstream handle, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
		size_t count, CUstreamCaptureMode mode),
	(handle, graph, deps, edges, count, mode))
{
	return begin(stream, graph, true, deps, count, mode);
}

ENTRY_STREAM(cuStreamEndCapture, _ptsz, handle, (CUstream handle, CUgraph *ret_graph),
	(handle, ret_graph))
{
	struct graph *graph = NULL;
	CUresult result;

	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = capture_end(stream, &graph);
	*ret_graph = (CUgraph)graph;
	return result;
}

ENTRY_STREAM(cuStreamIsCapturing, _ptsz, handle, (CUstream handle, CUstreamCaptureStatus *status),
	(handle, status))
{
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!capture_is_on(stream))
		return CUDA_SUCCESS;
	LOCK_SCOPE(&driver.memory_lock);
	*status = capture_status(stream);
	return CUDA_SUCCESS;
}

static CUresult get_info(const struct stream *stream, const struct capture_info *info)
{
	if (!info->status)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	capture_describe(stream, info);
	return CUDA_SUCCESS;
}

ENTRY_STREAM(cuStreamGetCaptureInfo, _ptsz, handle,
	(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id), (handle, status, id))
{
	return get_info(stream, &(struct capture_info){.status = status, .id = id});
}

ENTRY_STREAM(cuStreamGetCaptureInfo_v2, _ptsz, handle,
	(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **deps, size_t *count),
	(handle, status, id, graph, deps, count))
{
	return get_info(stream, &(struct capture_info){status, id, graph, deps, NULL, count});
}

ENTRY_STREAM(cuStreamGetCaptureInfo_v3, _ptsz, handle,
	(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count),
	(handle, status, id, graph, deps, edges, count))
{
	return get_info(stream, &(struct capture_info){status, id, graph, deps, edges, count});
}

ENTRY_BODY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
	static _Thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstreamCaptureMode wanted;

	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	wanted = *mode;
	*mode = current;
	current = wanted;
	return CUDA_SUCCESS;
}
