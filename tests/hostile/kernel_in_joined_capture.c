/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel that needs the device's heap, for which there is room, is launched, and before the driver is there another
 * thread lets the stream wait for an event of a capture that began long ago: so it is captured, too. The room is taken
 * otherwise then, and the kernel launched again.
 *
 * No capture began meanwhile, so the launch counted as one that ran, and the heap came uncharged. Now it does only where no
 * stream has joined a capture, either.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

static CUcontext context;
static CUstream stream;
static CUfunction kernel;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	hostile_launch(kernel, stream);
	return unused;
}

/* The stream's work from here on is captured in the other one's capture. */
static void join(CUstream from, CUstream to)
{
	CUevent event;

	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cuEventRecord(event, from));
	MUST(cuStreamWaitEvent(to, event, 0));
}

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUdeviceptr block;
	CUgraph captured;
	CUstream origin;
	pthread_t thread;
	CUmodule module;

	context = hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, GIB));
	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&kernel, module, "k"));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(pthread_create(&thread, NULL, launch, NULL));
	usleep(20000);
	join(origin, stream);
	MUST(pthread_join(thread, NULL));
	join(stream, origin);
	MUST(cuStreamEndCapture(origin, &captured));
	cuMemAlloc_v2(&block, 1200 * MIB);
	hostile_launch(kernel, stream);
	cuStreamSynchronize(stream);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuLaunchKernel"},
					  .is_slow_only = true,
					  .attack = attack});
}
