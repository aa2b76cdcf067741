/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its own default stream a short kernel and a long one, which is known as short, and ends. The next thread has the same
 * place in memory, and waits for a stream of its own, which is another one.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

#define KNOWN	  64
#define SHORT_NS  20000
#define KERNEL_NS (10 * MS)

static CUcontext context;
static CUfunction kernel;

static void *give(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	return unused;
}

static void *wait_for_own(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return unused;
}

static void run(void *(*work)(void *))
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, work, NULL));
	MUST(pthread_join(thread, NULL));
}

static void attack(void)
{
	context = served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		run(give);
		run(wait_for_own);
		served_sleep(KERNEL_NS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
