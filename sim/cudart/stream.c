/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs, whose types are the driver's. */
#include "sim/cudart/entry.h"

RUNTIME(cudaStreamCreate, (CUstream * stream), cuStreamCreate(stream, CU_STREAM_DEFAULT))
RUNTIME(cudaStreamCreateWithFlags, (CUstream * stream, unsigned int flags),
	cuStreamCreate(stream, flags))
RUNTIME(cudaStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
	cuStreamCreateWithPriority(stream, flags, priority))
RUNTIME(cudaStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
RUNTIME(cudaStreamQuery, (CUstream stream), cuStreamQuery(stream))
RUNTIME(cudaStreamSynchronize, (CUstream stream), cuStreamSynchronize(stream))
RUNTIME(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
	cuStreamWaitEvent(stream, event, flags))
RUNTIME(cudaStreamGetPriority, (CUstream stream, int *priority),
	cuStreamGetPriority(stream, priority))
RUNTIME(cudaStreamGetFlags, (CUstream stream, unsigned int *flags), cuStreamGetFlags(stream, flags))
RUNTIME(cudaStreamGetId, (CUstream stream, unsigned long long *id), cuStreamGetId(stream, id))
RUNTIME(cudaStreamGetDevice, (CUstream stream, int *device), cuStreamGetDevice(stream, device))
RUNTIME(cudaStreamAddCallback,
	(CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags),
	cuStreamAddCallback(stream, callback, user_data, flags))
RUNTIME(cudaLaunchHostFunc, (CUstream stream, CUhostFn function, void *user_data),
	cuLaunchHostFunc(stream, function, user_data))

RUNTIME(cudaEventCreate, (CUevent * event), cuEventCreate(event, CU_EVENT_DEFAULT))
RUNTIME(cudaEventCreateWithFlags, (CUevent * event, unsigned int flags),
	cuEventCreate(event, flags))
RUNTIME(cudaEventDestroy, (CUevent event), cuEventDestroy_v2(event))
RUNTIME(cudaEventRecord, (CUevent event, CUstream stream), cuEventRecord(event, stream))
RUNTIME(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
	cuEventRecordWithFlags(event, stream, flags))
RUNTIME(cudaEventQuery, (CUevent event), cuEventQuery(event))
RUNTIME(cudaIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event),
	cuIpcGetEventHandle(handle, event))
RUNTIME(cudaIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle),
	cuIpcOpenEventHandle(event, handle))
RUNTIME(cudaEventSynchronize, (CUevent event), cuEventSynchronize(event))
RUNTIME(cudaEventElapsedTime, (float *ms, CUevent start, CUevent end),
	cuEventElapsedTime(ms, start, end))

RUNTIME(cudaStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
	cuStreamIsCapturing(stream, status))
RUNTIME(cudaStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode),
	cuStreamBeginCapture_v2(stream, mode))
RUNTIME(cudaStreamBeginCaptureToGraph,
	(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
		const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
	cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode))
RUNTIME(cudaStreamEndCapture, (CUstream stream, CUgraph *graph), cuStreamEndCapture(stream, graph))
RUNTIME(cudaThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode),
	cuThreadExchangeStreamCaptureMode(mode))
#if RUNTIME_MAJOR < 13
RUNTIME(cudaStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
	cuStreamGetCaptureInfo(stream, status, id))
RUNTIME(cudaStreamGetCaptureInfo_v2,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **dependencies, size_t *count),
	cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count))
#define CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#else
#define CAPTURE_INFO cudaStreamGetCaptureInfo
#endif
RUNTIME(CAPTURE_INFO,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count),
	cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count))

RUNTIME(cudaGraphCreate, (CUgraph * graph, unsigned int flags), cuGraphCreate(graph, flags))
RUNTIME(cudaGraphDestroy, (CUgraph graph), cuGraphDestroy(graph))
RUNTIME(cudaGraphClone, (CUgraph * copy, CUgraph graph), cuGraphClone(copy, graph))
RUNTIME(cudaGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	cuGraphGetNodes(graph, nodes, count))
RUNTIME(cudaGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	cuGraphGetRootNodes(graph, nodes, count))
RUNTIME(cudaGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type),
	cuGraphNodeGetType(node, type))
RUNTIME(cudaGraphDestroyNode, (CUgraphNode node), cuGraphDestroyNode(node))
RUNTIME(cudaGraphAddEmptyNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count),
	cuGraphAddEmptyNode(node, graph, dependencies, count))
RUNTIME(cudaGraphAddHostNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
		const CUDA_HOST_NODE_PARAMS *params),
	cuGraphAddHostNode(node, graph, dependencies, count, params))
RUNTIME(cudaGraphInstantiate, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
	cuGraphInstantiateWithFlags(exec, graph, flags))
RUNTIME(cudaGraphInstantiateWithFlags,
	(CUgraphExec * exec, CUgraph graph, unsigned long long flags),
	cuGraphInstantiateWithFlags(exec, graph, flags))
RUNTIME(cudaGraphUpload, (CUgraphExec exec, CUstream stream), cuGraphUpload(exec, stream))
RUNTIME(cudaGraphLaunch, (CUgraphExec exec, CUstream stream), cuGraphLaunch(exec, stream))
RUNTIME(cudaGraphExecDestroy, (CUgraphExec exec), cuGraphExecDestroy(exec))
#if RUNTIME_MAJOR < 13
RUNTIME(cudaGraphAddDependencies,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
	cuGraphAddDependencies(graph, from, to, count))
RUNTIME(cudaGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *nodes, size_t *count),
	cuGraphNodeGetDependencies(node, nodes, count))
#else
RUNTIME(cudaGraphAddDependencies,
	(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
		const CUgraphEdgeData *edges, size_t count),
	cuGraphAddDependencies_v2(graph, from, to, edges, count))
RUNTIME(cudaGraphNodeGetDependencies,
	(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count),
	cuGraphNodeGetDependencies_v2(node, nodes, edges, count))
#endif
