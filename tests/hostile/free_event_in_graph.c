/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is freed in the order of a stream that is busy. The event by which the library knows that the stream has got there has
 * the handle of one that the program has put into graphs and destroyed then: their launch in an idle stream records it.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    12
#define BLOCK_BYTES (1024 * MIB)
#define EVENTS	    16

/* A graph that records the event, by a node that was made with it or was given it later. */
static CUgraphExec graph_of(CUevent event, bool is_later)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUevent first = event;
	CUgraph graph;

	if (is_later)
		MUST(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddEventRecordNode(&node, graph, NULL, 0, first));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	if (is_later)
		MUST(cuGraphExecEventRecordNodeSetEvent(exec, node, event));
	return exec;
}

static void attack(void)
{
	CUgraphExec exec[EVENTS];
	CUdeviceptr block;
	CUstream busy, idle;
	CUevent event[EVENTS];

	hostile_begin();
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	for (int k = 0; k < EVENTS; k++)
		MUST(cuEventCreate(&event[k], CU_EVENT_DISABLE_TIMING));
	for (int k = 0; k < EVENTS; k++)
		exec[k] = graph_of(event[k], k % 2);
	for (int k = 0; k < EVENTS; k++)
		MUST(cuGraphLaunch(exec[k], idle));
	MUST(cuStreamSynchronize(idle));
	hostile_keep_busy(busy);
	for (int k = 0; k < EVENTS; k++)
		MUST(cuEventDestroy_v2(event[k]));
	for (int i = 0; i < BLOCKS; i++) {
		if (cuMemAlloc_v2(&block, BLOCK_BYTES) != CUDA_SUCCESS)
			break;
		MUST(cuMemFreeAsync(block, busy));
		for (int k = 0; k < EVENTS; k++)
			cuGraphLaunch(exec[k], idle);
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 2 * GIB, .is_simulated_only = true, .attack = attack});
}
