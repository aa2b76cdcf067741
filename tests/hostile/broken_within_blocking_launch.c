/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch comes back when its kernel is done. While the driver reads the kernel's parameters another thread gives the stream
 * what is no work (a function of the host, a wait for a word that is there, a copy), or destroys it. The stream's batch ends before the kernel, and
 * the next one began behind it: 99.4 % of the device at a cap of 30 was served, and 97.9 at 5. Now such work is charged from when its call went on to
 * the driver.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	   40
#define SHORT_NS   20000
#define KERNEL_NS  (10 * MS)
#define COPY_BYTES (UINT64_C(1) << 18)

enum way { FUNCTION, WORD, COPY, DESTROY, WAYS };

static CUcontext context;
static CUstream stream;
static CUdeviceptr memory;
static char host[COPY_BYTES];
static uint32_t *word;
static unsigned rounds;

static void nothing(void *unused)
{
}

static void *break_each(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		within_await();
		if (rounds % WAYS == FUNCTION)
			MUST(cuLaunchHostFunc(stream, nothing, NULL));
		else if (rounds % WAYS == WORD)
			MUST(cuStreamWaitValue32_v2(
				stream, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
		else if (rounds % WAYS == COPY)
			MUST(cuMemcpyHtoDAsync_v2(memory, host, COPY_BYTES, stream));
		else
			MUST(cuStreamDestroy_v2(stream));
		within_answer();
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
	within_begin(within_hand_over);
	MUST(pthread_create(&thread, NULL, break_each, NULL));
	MUST(cuMemAlloc_v2(&memory, COPY_BYTES));
	MUST(cuMemHostAlloc((void **)&word, sizeof(*word), 0));
	*word = 1;
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;; rounds++) {
		served_launch(kernel, stream, SHORT_NS);
		/* A driver may refuse it where the stream is gone. */
		(void)within_launch(kernel, stream, KERNEL_NS);
		if (rounds % WAYS == DESTROY)
			MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		served_sleep(MS / 5);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
