/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read. While the driver reads them, the program's handler has another
 * thread destroy the stream, and then lets the launch go on. The stream has ended for all who ask for it, and its work has not; nor
 * does the handle tell more where a new stream has it at once.
 */
#include <pthread.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static CUcontext context;
static CUstream stream, next;
static unsigned rounds;

static void *destroy_each(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		within_await();
		MUST(cuStreamDestroy_v2(stream));
		next = NULL;
		if (rounds % 2)
			MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
		within_answer();
	}
	return unused;
}

static void attack(void)
{
	CUfunction kernel;
	pthread_t thread;
	CUstream other;

	context = served_begin();
	kernel = served_kernel();
	within_begin(within_hand_over);
	MUST(pthread_create(&thread, NULL, destroy_each, NULL));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;; rounds++) {
		if (!next)
			MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
		stream = next;
		/* A driver may refuse it, as the stream is gone. */
		(void)within_launch(kernel, stream, KERNEL_NS);
		MUST(cuStreamSynchronize(other));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
