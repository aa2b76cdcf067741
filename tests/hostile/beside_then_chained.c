/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many streams work beside each other, so that each is taken for a small part of the time, and then one after the other, each waiting
 * for an event of the one before.
 */
#include "tests/hostile/served.h"

#define STREAMS	  120
#define KERNEL_NS (2 * MS)
#define BESIDE	  8
#define CHAINED	  2

static CUstream stream[STREAMS];
static CUevent event[STREAMS];

static void work_beside(CUfunction kernel)
{
	for (int k = 0; k < BESIDE; k++)
		for (int i = 0; i < STREAMS; i++)
			served_launch(kernel, stream[i], KERNEL_NS);
	MUST(cuCtxSynchronize());
}

static void work_chained(CUfunction kernel)
{
	for (int i = 0; i < STREAMS; i++) {
		if (i)
			MUST(cuStreamWaitEvent(stream[i], event[i - 1], 0));
		for (int k = 0; k < CHAINED; k++)
			served_launch(kernel, stream[i], KERNEL_NS);
		MUST(cuEventRecord(event[i], stream[i]));
	}
	MUST(cuCtxSynchronize());
}

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STREAMS; i++) {
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		MUST(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
	}
	for (;;) {
		work_beside(kernel);
		work_chained(kernel);
	}
}

int main(int argc, char **argv)
{
	/*
	 * 0.13 s may be given ahead, with what the credit and its overdraft pay for, and are owed: with some us of the host's more or less
	 * 508 or 602 of a second are served, and 301 of 5 s.
	 */
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .window_ms = 1000,
					 .allowance_permille = 310,
					 .attack = attack});
}
