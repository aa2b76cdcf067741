/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is asked for in a stream that is captured, and another thread destroys the stream and makes one of the same handle,
 * which is not captured, before the driver is there.
 *
 * What a capture takes is a graph's, and was not charged. Now no stream is made from the look at it to the driver's answer.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define STREAMS_MOST 64

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
	CUstream next = NULL;
	pthread_t thread;

	context = hostile_begin();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(pthread_create(&thread, NULL, allocate, NULL));
	usleep(20000);
	MUST(cuStreamDestroy_v2(stream));
	for (int i = 0; i < STREAMS_MOST && next != stream; i++)
		MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
	MUST(pthread_join(thread, NULL));
	cuStreamSynchronize(next);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuMemAllocAsync"},
					  .is_slow_only = true,
					  .attack = attack});
}
