/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph that allocates is launched into a capture, which another thread ends before the driver is there.
 *
 * A graph that is captured takes no memory, and none was reserved for it. Now no capture ends from the look at it to the
 * driver's answer.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

static CUcontext context;
static CUstream stream;
static CUgraphExec exec;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	cuGraphLaunch(exec, stream);
	return unused;
}

static void attack(void)
{
	CUgraph graph, captured;
	CUdeviceptr block;
	pthread_t thread;

	context = hostile_begin();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemAllocAsync(&block, 8 * GIB, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(pthread_create(&thread, NULL, launch, NULL));
	usleep(20000);
	cuStreamEndCapture(stream, &captured);
	MUST(pthread_join(thread, NULL));
	cuStreamSynchronize(stream);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuGraphLaunch"},
					  .is_slow_only = true,
					  .attack = attack});
}
