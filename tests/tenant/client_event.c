/* SPDX-License-Identifier: Apache-2.0 */
/* The test client's word for a program's own events, in all that can be done with them. */
#include "tests/tenant/client.h"

#define FREES		  8
#define EVENTS		  32
#define CALL(symbol, ...) ((symbol##_fn *)client_find(#symbol))(__VA_ARGS__)
#define TRY(symbol, ...)                                                      \
	do {                                                                  \
		CUresult r_ = CALL(symbol, __VA_ARGS__);                      \
		if (r_ != CUDA_SUCCESS) {                                     \
			client_say(c, " call=%s line=%d", #symbol, __LINE__); \
			return (int)r_;                                       \
		}                                                             \
	} while (0)

/* Frees for which the library has events of its own, where the stream is busy. */
static int free_in_order(struct client *c, CUstream stream)
{
	CUdeviceptr block;

	for (int i = 0; i < FREES; i++) {
		TRY(cuMemAlloc_v2, &block, 1 << 20);
		TRY(cuMemFreeAsync, block, stream);
	}
	return 0;
}

/* Nodes that record it, made and changed in each way, and launched. */
static int record_by_graph(struct client *c, CUstream stream, CUevent event, CUevent other)
{
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
	CUgraphNode first, second;
	CUgraphExec exec;
	CUgraph graph;

	TRY(cuGraphCreate, &graph, 0);
	TRY(cuGraphAddEventRecordNode, &first, graph, NULL, 0, event);
	TRY(cuGraphAddNode, &second, graph, NULL, 0, &params);
	TRY(cuGraphEventRecordNodeSetEvent, first, other);
	TRY(cuGraphNodeSetParams, first, &params);
	TRY(cuGraphInstantiateWithFlags, &exec, graph, 0);
	TRY(cuGraphExecEventRecordNodeSetEvent, exec, second, other);
	TRY(cuGraphExecNodeSetParams, exec, second, &params);
	TRY(cuGraphLaunch, exec, stream);
	TRY(cuEventSynchronize, event);
	TRY(cuGraphExecDestroy, exec);
	TRY(cuGraphDestroy, graph);
	return 0;
}

/* The same by a capture. */
static int record_by_capture(struct client *c, CUstream stream, CUevent event)
{
	CUgraph graph;

	TRY(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	TRY(cuEventRecordWithFlags, event, stream, CU_EVENT_RECORD_EXTERNAL);
	TRY(cuStreamEndCapture, stream, &graph);
	TRY(cuGraphDestroy, graph);
	return 0;
}

/* events: a stream's, beside frees in its order */
static int run_events(struct client *c, char **word, unsigned count)
{
	CUevent events[EVENTS], shared;
	CUipcEventHandle handle;
	CUcontext context;
	CUstream stream;
	float ms;
	int r;

	TRY(cuCtxGetCurrent, &context);
	TRY(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	TRY(cuEventCreate, &shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	TRY(cuIpcGetEventHandle, &handle, shared);
	for (int i = 0; i < EVENTS; i++)
		TRY(cuEventCreate, &events[i], CU_EVENT_DEFAULT);
	r = free_in_order(c, stream);
	for (int i = 0; i < EVENTS && r == 0; i++) {
		TRY(cuEventRecord, events[i], stream);
		TRY(cuEventRecord_ptsz, events[i], stream);
		TRY(cuEventRecordWithFlags, events[i], stream, CU_EVENT_RECORD_DEFAULT);
		TRY(cuEventRecordWithFlags_ptsz, events[i], stream, CU_EVENT_RECORD_DEFAULT);
		TRY(cuCtxRecordEvent, context, events[i]);
	}
	for (int i = 0; i < EVENTS && r == 0; i++)
		TRY(cuEventSynchronize, events[i]);
	if (r == 0)
		TRY(cuEventElapsedTime, &ms, events[0], events[1]);
	if (r == 0)
		r = record_by_graph(c, stream, events[0], events[1]);
	if (r == 0)
		r = record_by_capture(c, stream, events[2]);
	/* What is destroyed here is what the next frees' events are made of. */
	for (int i = 0; i < EVENTS && r == 0; i += 2) {
		if (i % 4)
			TRY(cuEventDestroy_v2, events[i]);
		else
			TRY(cuEventDestroy, events[i]);
	}
	if (r == 0)
		r = free_in_order(c, stream);
	for (int i = 1; i < EVENTS && r == 0; i += 2)
		TRY(cuEventDestroy_v2, events[i]);
	return r;
}

const struct client_command client_event_commands[] = {
	{"events", 0, run_events, ""},
	{0},
};
