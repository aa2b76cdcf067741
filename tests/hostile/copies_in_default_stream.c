/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long copies from the host in the default stream, and short kernels in another one, which wait for it without a call that says so: each was charged from the end
 * of the one before it, and the program had 4.5 % of the device at a cap of 10.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS MS
#define BYTES	  (UINT64_C(100) * 1000 * 1000) /* 5 ms */
#define STEPS	  3				/* at once */
#define KNOWN	  40

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
	MUST(cuStreamCreate(&work, CU_STREAM_DEFAULT));
	for (unsigned i = 0; i < STEPS; i++)
		MUST(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	served_make_known(kernel, KNOWN, KERNEL_NS);
	for (unsigned i = 0;; i++) {
		MUST(cuEventSynchronize(done[i % STEPS]));
		MUST(cuMemcpyHtoDAsync_v2(block, host, BYTES, NULL));
		served_launch(kernel, work, KERNEL_NS);
		MUST(cuEventRecord(done[i % STEPS], work));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 10, .least_permille = 90, .attack = attack});
}
