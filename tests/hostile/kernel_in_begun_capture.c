/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel that needs the device's heap, for which there is room, is launched, and another thread begins a capture of
 * the stream before the driver is there. The room is taken otherwise then, and the kernel launched again.
 *
 * A kernel that was captured after all brought no heap, and counted as launched. Now a launch counts only where no capture
 * began from the look for one to the driver's answer.
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

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUdeviceptr block;
	CUgraph captured;
	pthread_t thread;
	CUmodule module;

	context = hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, GIB));
	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&kernel, module, "k"));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(pthread_create(&thread, NULL, launch, NULL));
	usleep(20000);
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(pthread_join(thread, NULL));
	MUST(cuStreamEndCapture(stream, &captured));
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
