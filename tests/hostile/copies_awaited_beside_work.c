/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short kernels wait by events for long copies of another stream, while a third one has a moment's work: the event may be the end of that, so the
 * slice keeps its turn meanwhile, and is charged for that as for work.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS MS
#define SHORT_NS  50000
#define BYTES	  (UINT64_C(100) * 1000 * 1000) /* 5 ms */
#define STEPS	  3				/* at once */
#define KNOWN	  40

static void attack(void)
{
	CUevent ready[STEPS], done[STEPS];
	CUstream work, copies, beside;
	CUfunction kernel;
	CUdeviceptr block;
	void *host;

	served_begin();
	kernel = served_kernel();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuMemHostAlloc(&host, BYTES, 0));
	MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < STEPS; i++) {
		MUST(cuEventCreate(&ready[i], CU_EVENT_DISABLE_TIMING));
		MUST(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	}
	served_make_known(kernel, KNOWN, KERNEL_NS);
	for (unsigned i = 0;; i++) {
		MUST(cuEventSynchronize(done[i % STEPS]));
		MUST(cuMemcpyHtoDAsync_v2(block, host, BYTES, copies));
		MUST(cuEventRecord(ready[i % STEPS], copies));
		served_launch(kernel, beside, SHORT_NS);
		MUST(cuStreamWaitEvent(work, ready[i % STEPS], 0));
		served_launch(kernel, work, KERNEL_NS);
		MUST(cuEventRecord(done[i % STEPS], work));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 10, .attack = attack});
}
