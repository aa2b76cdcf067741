/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many streams of one process are given a graph each that nobody has seen, one after the other on the device and all at once by
 * the host: each looks as if it took nothing.
 */
#include "tests/hostile/served.h"

#define STREAMS	 110
#define GRAPH_NS (100 * MS)

static void attack(void)
{
	CUstream stream[STREAMS];
	CUgraphExec graph[STREAMS];
	CUfunction kernel;
	CUevent event;

	served_begin();
	kernel = served_kernel();
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	for (;;) {
		for (int i = 0; i < STREAMS; i++)
			graph[i] = served_graph(kernel, GRAPH_NS);
		for (int i = 0; i < STREAMS; i++) {
			MUST(cuGraphLaunch(graph[i], stream[i]));
			MUST(cuEventRecord(event, stream[i]));
			MUST(cuStreamWaitEvent(stream[(i + 1) % STREAMS], event, 0));
		}
		MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	/* Four at once, of 100 ms, may end a window of 5 s. */
	return served_main(argv,
		&(struct served){.cap_percent = 30, .allowance_permille = 90, .attack = attack});
}
