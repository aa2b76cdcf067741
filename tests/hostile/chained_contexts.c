/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four contexts work one after the other, each stream waiting for an event of the one before. All wait at once, so each
 * one's first event is recorded in a stream that waits: it happens much later than it was recorded.
 */
#include "tests/hostile/served.h"

#define CONTEXTS  4
#define KERNEL_NS (20 * MS)

static void attack(void)
{
	CUcontext context[CONTEXTS];
	CUfunction kernel[CONTEXTS];
	CUstream stream[CONTEXTS];
	CUevent event[CONTEXTS];

	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		context[i] = served_context();
		kernel[i] = served_kernel();
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		MUST(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
	}
	for (unsigned round = 0;; round++)
		for (int i = 0; i < CONTEXTS; i++) {
			int before = (i + CONTEXTS - 1) % CONTEXTS;

			MUST(cuCtxSetCurrent(context[i]));
			if (round)
				MUST(cuEventSynchronize(event[i]));
			if (round || i)
				MUST(cuStreamWaitEvent(stream[i], event[before], 0));
			served_launch(kernel[i], stream[i], KERNEL_NS);
			MUST(cuEventRecord(event[i], stream[i]));
		}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30,
			      .settle_ms = 2000, /* the first kernels of all are paid for by then */
			      .least_permille = 290,
			      .attack = attack});
}
