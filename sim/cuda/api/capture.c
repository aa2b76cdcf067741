/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing streams. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/graph/graph.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult begin_capture(bool is_thread, CUstream handle, CUgraph graph_handle, bool has_graph,
	const CUgraphNode *deps, size_t count, CUstreamCaptureMode mode)
{
	struct context *context;
	struct stream *stream;
	struct graph *graph;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count > 0 && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&driver.memory_lock);
	graph = graph_check(graph_handle);
	if (has_graph && !graph)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = capture_begin(stream, graph, deps, count, mode);
	pthread_mutex_unlock(&driver.memory_lock);
	return result;
}

ENTRY_FORMS(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream))
{
	return begin_capture(
		is_thread, stream, NULL, false, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

ENTRY_FORMS(
	cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
	return begin_capture(is_thread, stream, NULL, false, NULL, 0, mode);
}

ENTRY_FORMS(cuStreamBeginCaptureToGraph, _ptsz,
	(CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
		size_t count, CUstreamCaptureMode mode),
	(stream, graph, deps, edges, count, mode))
{
	return begin_capture(is_thread, stream, graph, true, deps, count, mode);
}

ENTRY_FORMS(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph *ret_graph), (handle, ret_graph))
{
	struct context *context;
	struct stream *stream;
	struct graph *graph = NULL;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	result = capture_end(stream, &graph);
	pthread_mutex_unlock(&driver.memory_lock);
	*ret_graph = (CUgraph)graph;
	return result;
}

ENTRY_FORMS(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus *status),
	(handle, status))
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!capture_is_on(stream))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&driver.memory_lock);
	*status = capture_status(stream);
	pthread_mutex_unlock(&driver.memory_lock);
	return CUDA_SUCCESS;
}

static CUresult get_info(bool is_thread, CUstream handle, const struct capture_info *info)
{
	struct context *context;
	struct stream *stream;
	CUresult result = context_stream(handle, is_thread, &context, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!info->status)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver.memory_lock);
	capture_describe(stream, info);
	pthread_mutex_unlock(&driver.memory_lock);
	return CUDA_SUCCESS;
}

ENTRY_FORMS(cuStreamGetCaptureInfo, _ptsz,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), (stream, status, id))
{
	return get_info(is_thread, stream, &(struct capture_info){.status = status, .id = id});
}

ENTRY_FORMS(cuStreamGetCaptureInfo_v2, _ptsz,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **deps, size_t *count),
	(stream, status, id, graph, deps, count))
{
	return get_info(
		is_thread, stream, &(struct capture_info){status, id, graph, deps, NULL, count});
}

ENTRY_FORMS(cuStreamGetCaptureInfo_v3, _ptsz,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count),
	(stream, status, id, graph, deps, edges, count))
{
	return get_info(
		is_thread, stream, &(struct capture_info){status, id, graph, deps, edges, count});
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
