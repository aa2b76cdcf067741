/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means no harm, and may not have less for it: kernels wait by events for copies of another stream, which has two buffers. Each kernel was charged from the end
 * of the one before it.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS 500000
#define BYTES	  (UINT64_C(40) * 1000 * 1000) /* 2 ms */
#define STEPS	  8			       /* at once */

static void attack(void)
{
	CUevent ready[STEPS], done[STEPS];
	CUstream work, copies;
	CUfunction kernel;
	CUdeviceptr block;
	void *host;

	served_begin();
	kernel = served_kernel();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuMemHostAlloc(&host, BYTES, 0));
	MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < STEPS; i++) {
		MUST(cuEventCreate(&ready[i], CU_EVENT_DISABLE_TIMING));
		MUST(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	}
	for (unsigned i = 0;; i++) {
		MUST(cuEventSynchronize(done[i % STEPS]));
		MUST(cuStreamWaitEvent(copies, done[(i + STEPS - 2) % STEPS], 0));
		MUST(cuMemcpyHtoDAsync_v2(block, host, BYTES, copies));
		MUST(cuEventRecord(ready[i % STEPS], copies));
		MUST(cuStreamWaitEvent(work, ready[i % STEPS], 0));
		served_launch(kernel, work, KERNEL_NS);
		MUST(cuEventRecord(done[i % STEPS], work));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 18, .least_permille = 165, .attack = attack});
}
