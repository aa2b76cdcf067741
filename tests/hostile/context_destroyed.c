/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program destroys a context, or resets the primary one, after the work in it is done and before anybody has asked for
 * the end of that work. The events by which it would be measured go with the context.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (20 * MS)

/* The first is measured by itself, the second joins a batch that is expected to be short. */
static void work(CUstream stream)
{
	CUfunction kernel = served_kernel();

	served_launch(kernel, stream, KERNEL_NS);
	served_launch(kernel, stream, KERNEL_NS);
	served_sleep(2 * KERNEL_NS);
}

static void attack(void)
{
	CUcontext primary;
	CUstream stream;

	counted_crowd(4);
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	for (unsigned i = 0;; i++) {
		CUcontext context = served_context();

		work(NULL);
		MUST(cuCtxDestroy_v2(context));
		MUST(cuCtxSetCurrent(primary));
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		work(stream);
		MUST(cuDevicePrimaryCtxReset_v2(0));
		MUST(cuDevicePrimaryCtxRelease_v2(0));
		MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
