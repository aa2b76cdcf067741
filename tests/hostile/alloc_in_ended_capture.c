/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is asked for in a stream that is captured, and another thread ends the capture before the driver is there.
 *
 * What a capture takes is a graph's, and was not charged. Now no capture ends from the look at it to the driver's answer.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

static CUcontext context;
static CUstream stream;

static void *allocate(void *unused)
{
	CUdeviceptr block;

	MUST(cuCtxSetCurrent(context));
	cuMemAllocAsync(&block, 8 * GIB, stream);
	return unused;
}

static void attack(void)
{
	CUgraph captured;
	pthread_t thread;

	context = hostile_begin();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(pthread_create(&thread, NULL, allocate, NULL));
	usleep(20000);
	cuStreamEndCapture(stream, &captured);
	MUST(pthread_join(thread, NULL));
	cuStreamSynchronize(stream);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuMemAllocAsync"},
					  .is_slow_only = true,
					  .attack = attack});
}
