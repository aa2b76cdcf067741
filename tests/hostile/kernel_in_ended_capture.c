/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first kernel that needs the device's heap, of 8 GiB, is launched into a capture, which another thread ends before the
 * driver is there.
 *
 * A kernel that is captured brings no heap, and none was reserved for it. Now no capture ends from the look at it to the
 * driver's answer.
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
	CUgraph captured;
	pthread_t thread;
	CUmodule module;

	context = hostile_begin();
	MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * GIB));
	hostile_ptx(&(struct hostile_code){.has_heap = true}, text);
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&kernel, module, "k"));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
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
					  .slow_calls = {"cuLaunchKernel"},
					  .is_slow_only = true,
					  .attack = attack});
}
