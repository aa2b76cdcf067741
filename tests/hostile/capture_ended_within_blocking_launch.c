/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a kernel is launched into a capture, which another thread ends while the call is on its way to the driver, so that it runs.
 * Nothing of the stream's was before it, and it was charged from when the call had come back, and was done: 91 % of the device at a cap of 30. Now it is
 * charged from when the call began.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  20000
#define KERNEL_NS (40 * MS)

static CUcontext context;
static CUstream stream;
static sem_t begun, ended;

static void nothing(void *unused)
{
}

static void *end_each(void *unused)
{
	CUgraph graph;

	MUST(cuCtxSetCurrent(context));
	for (;;) {
		MUST(sem_wait(&begun));
		/* The driver's call takes 3 ms. */
		served_sleep(MS);
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphDestroy(graph));
		MUST(sem_post(&ended));
	}
	return unused;
}

static void attack(void)
{
	CUfunction kernel;
	pthread_t thread;

	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	context = served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	served_make_known(kernel, KNOWN, SHORT_NS);
	MUST(sem_init(&begun, 0, 0));
	MUST(sem_init(&ended, 0, 0));
	MUST(pthread_create(&thread, NULL, end_each, NULL));
	for (;;) {
		MUST(cuLaunchHostFunc(stream, nothing, NULL));
		MUST(cuStreamSynchronize(stream));
		MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		MUST(sem_post(&begun));
		served_launch(kernel, stream, KERNEL_NS);
		MUST(sem_wait(&ended));
		served_sleep(MS / 5);
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){
			      .cap_percent = 30, .slow_call = "cuLaunchKernel", .attack = attack});
}
