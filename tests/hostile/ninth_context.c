/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of eight contexts events are placed on the clock. A ninth one's work comes after the first one's, and is charged before that:
 * what is marked as its time would be the first one's.
 */
#include "tests/hostile/served.h"

#define CONTEXTS  9
#define KERNEL_NS (40 * MS)
#define KNOWN_NS  20000

static void attack(void)
{
	CUcontext context[CONTEXTS];
	CUfunction kernel[CONTEXTS];
	CUstream stream[CONTEXTS], first;
	CUevent event;

	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		context[i] = served_context();
		kernel[i] = served_kernel();
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		served_launch(kernel[i], stream[i], KNOWN_NS);
		MUST(cuStreamSynchronize(stream[i]));
	}
	/* Its place among the streams is behind the ninth context's. */
	MUST(cuCtxSetCurrent(context[0]));
	MUST(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (;;) {
		MUST(cuCtxSetCurrent(context[0]));
		served_launch(kernel[0], first, KERNEL_NS);
		MUST(cuEventRecord(event, first));
		MUST(cuCtxSetCurrent(context[CONTEXTS - 1]));
		MUST(cuStreamWaitEvent(stream[CONTEXTS - 1], event, 0));
		served_launch(kernel[CONTEXTS - 1], stream[CONTEXTS - 1], KERNEL_NS);
		served_sleep(2 * KERNEL_NS + MS / 10);
		MUST(cuStreamSynchronize(stream[CONTEXTS - 1]));
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .settle_ms = 2000, .attack = attack});
}
