/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a stream's capture would take, and that another thread's end of the capture brings to the device after all. */
#include <pthread.h>

#include "tests/hostile/served.h"

#define KERNEL_NS (40 * MS)

static CUcontext context;
static CUstream stream;
static CUgraphExec graph;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	cuGraphLaunch(graph, stream);
	return unused;
}

static void attack(void)
{
	CUgraph captured;
	pthread_t thread;

	context = served_begin();
	graph = served_graph(served_kernel(), KERNEL_NS);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		MUST(pthread_create(&thread, NULL, launch, NULL));
		served_sleep(2 * MS);
		MUST(cuStreamEndCapture(stream, &captured));
		MUST(pthread_join(thread, NULL));
		if (captured)
			MUST(cuGraphDestroy(captured));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){
			      .cap_percent = 30, .slow_call = "cuGraphLaunch", .attack = attack});
}
