/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done. While the driver reads its parameters another thread waits for what the stream
 * was given before, so that this batch ends; only then the launch, which is known as short, goes on. The process is killed before it returns.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	  20
#define SHORT_NS  20000
#define KERNEL_NS (100 * MS)

static CUcontext context;

/* Waits for what was given before, and kills the process when the kernel should be done. */
static void *wait_when_asked(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	within_await();
	MUST(cuStreamSynchronize(NULL));
	within_answer();
	served_sleep(KERNEL_NS - MS);
	raise(SIGKILL);
	return unused;
}

static void handle(int number)
{
	(void)number;
	within_ask();
	within_allow();
}

static void run_one(void)
{
	CUfunction kernel;
	pthread_t thread;

	within_begin(handle);
	context = served_begin();
	kernel = served_kernel();
	MUST(pthread_create(&thread, NULL, wait_when_asked, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	served_launch(kernel, NULL, SHORT_NS);
	MUST(within_launch(kernel, NULL, KERNEL_NS));
	MUST(pthread_join(thread, NULL));
}

static void attack(void)
{
	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	served_one_by_one(run_one);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
