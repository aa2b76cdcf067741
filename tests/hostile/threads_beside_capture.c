/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means no harm, and may not have less for it: threads come, work in their own default streams, wait and go, while another thread captures in a stream
 * that never does anything else.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

#define THREADS	  4
#define PIECES	  10
#define CAPTURED  5
#define KERNEL_NS 100000

static CUcontext context;
static CUfunction kernel;

static void *work(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < PIECES; i++)
		served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return unused;
}

static void *come_and_go(void *unused)
{
	for (;;) {
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, work, NULL));
		MUST(pthread_join(thread, NULL));
		served_sleep(MS);
	}
	return unused;
}

static void attack(void)
{
	CUstream stream;
	CUgraph graph;
	pthread_t thread;

	context = served_begin();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread, NULL, come_and_go, NULL));
	for (;;) {
		MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		for (unsigned i = 0; i < CAPTURED; i++)
			served_launch(kernel, stream, KERNEL_NS);
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphDestroy(graph));
		served_sleep(MS);
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 20, .least_permille = 190, .attack = attack});
}
