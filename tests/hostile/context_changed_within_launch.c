/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read. While the driver reads them, the program's handler waits for
 * the default stream, and makes another context current, where it waits for other work. The launch goes on in the first context:
 * its stream, which has no handle of its own, is another one by then for who looks it up.
 */

#include "tests/hostile/within_launch.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static CUcontext second;
static CUdeviceptr block;

static void handle(int number)
{
	MUST(cuStreamSynchronize(NULL));
	/* The library may refuse it. */
	if (cuCtxSetCurrent(second) == CUDA_SUCCESS) {
		MUST(cuMemsetD8Async(block, 0, 64, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
	within_allow();
}

static void attack(void)
{
	CUfunction kernel;
	CUcontext first;

	first = served_begin();
	kernel = served_kernel();
	MUST(cuCtxCreate_v2(&second, 0, 0));
	MUST(cuMemAlloc_v2(&block, WITHIN_PAGE_BYTES));
	MUST(cuCtxSetCurrent(first));
	within_begin(handle);
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		MUST(cuCtxSetCurrent(first));
		MUST(within_launch(kernel, NULL, KERNEL_NS));
		MUST(cuCtxSetCurrent(second));
		MUST(cuStreamSynchronize(NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
