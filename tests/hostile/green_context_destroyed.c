/* SPDX-License-Identifier: Apache-2.0 */
/* A program destroys a green context with work under way in it: that goes on in the primary one. */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (20 * MS)

static CUdevResourceDesc describe(void)
{
	CUdevResourceDesc description;
	CUdevResource all, some;
	unsigned int count = 1;

	MUST(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	MUST(cuDevSmResourceSplitByCount(&some, &count, &all, NULL, 0, 8));
	counted_fill(some.sm.smCount);
	MUST(cuDevResourceGenerateDesc(&description, &some, 1));
	return description;
}

static void attack(void)
{
	CUdevResourceDesc description;
	CUcontext primary, context;
	CUfunction kernel;
	CUgreenCtx green;
	CUstream stream;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	MUST(cuCtxSetCurrent(primary));
	kernel = served_kernel();
	description = describe();
	for (;;) {
		MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
		MUST(cuCtxFromGreenCtx(&context, green));
		MUST(cuCtxSetCurrent(context));
		MUST(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
		served_launch(kernel, stream, KERNEL_NS);
		MUST(cuGreenCtxDestroy(green));
		MUST(cuCtxSetCurrent(primary));
		served_sleep(KERNEL_NS);
		cuStreamDestroy_v2(stream); /* a card has ended it with its context */
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
