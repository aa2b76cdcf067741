/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means no harm, and may not have less for it: a copy to the host goes on beside short kernels of another stream, and the program waits for the copy,
 * by its event or with all else. The kernels are over long before that wait ends.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define BYTES \
	(UINT64_C(1) << (counted_is_on_card() ? 26 : 25)) /* they take longer than the kernels */
/* A card takes some us to begin each and to end it, which are charged, and which a kernel cannot count: a tenth of 75 us. */
#define SHORT_NS (counted_is_on_card() ? 250000 : 75000)
#define SHORTS	 2

static void attack(void)
{
	CUstream work, copies;
	CUfunction kernel;
	CUdeviceptr block;
	CUevent event;
	void *host;

	served_begin();
	kernel = served_kernel();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuMemHostAlloc(&host, BYTES, 0));
	MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (unsigned i = 0;; i++) {
		MUST(cuMemcpyDtoHAsync_v2(host, block, BYTES, copies));
		MUST(cuEventRecord(event, copies));
		for (int j = 0; j < SHORTS; j++)
			served_launch(kernel, work, SHORT_NS);
		if (i & 1)
			MUST(cuEventSynchronize(event));
		else
			MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 5, .least_permille = 45, .attack = attack});
}
