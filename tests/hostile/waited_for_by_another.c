/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives work to its own default stream and waits for none of it, as another one waits for the whole context now and
 * then. That wait ends long after most of the work: charged until then, the slice has too little.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

#define KERNEL_NS 500000
#define SHORT_NS  50000
#define STEP_NS	  (9 * MS)

static CUcontext context;
static CUfunction kernel, short_kernel;

static void *give(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
		served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
		served_sleep(STEP_NS);
	}
	return unused;
}

static void attack(void)
{
	pthread_t thread;
	CUstream stream;

	context = served_begin();
	kernel = served_kernel();
	short_kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(pthread_create(&thread, NULL, give, NULL));
	for (;;) {
		served_launch(short_kernel, stream, SHORT_NS);
		served_sleep(20 * MS);
		MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 5, .least_permille = 45, .attack = attack});
}
