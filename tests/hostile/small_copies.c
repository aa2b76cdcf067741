/* SPDX-License-Identifier: Apache-2.0 */
/* Means no harm, and may not have less for it: many copies from the host, each of them short, come before each kernel in its stream. */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS 100000
#define COPIES	  50
#define BYTES	  (200 << 10)
#define STEPS	  4 /* at once */

static void attack(void)
{
	CUevent done[STEPS];
	CUfunction kernel;
	CUdeviceptr block;
	CUstream work;
	void *host;

	served_begin();
	kernel = served_kernel();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuMemHostAlloc(&host, BYTES, 0));
	MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < STEPS; i++)
		MUST(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	for (unsigned i = 0;; i++) {
		MUST(cuEventSynchronize(done[i % STEPS]));
		for (unsigned j = 0; j < COPIES; j++)
			MUST(cuMemcpyHtoDAsync_v2(block, host, BYTES, work));
		served_launch(kernel, work, KERNEL_NS);
		MUST(cuEventRecord(done[i % STEPS], work));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 12, .least_permille = 110, .attack = attack});
}
