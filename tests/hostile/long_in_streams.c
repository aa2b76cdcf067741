/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that is known as short takes long this time, once in each of many streams at one moment, one after the other on the
 * device. As one kernel of that length, they cannot be taken back: so it is judged when the first of them are over, and what they
 * took is owed.
 */
#include "tests/hostile/served.h"

#define STREAMS	  110
#define KNOWN	  40
#define SHORT_NS  20000
#define KERNEL_NS (100 * MS)

static void attack(void)
{
	CUstream stream[STREAMS];
	CUfunction kernel;
	CUevent event;

	served_begin();
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	for (;;) {
		kernel = served_kernel();
		served_make_known(kernel, KNOWN, SHORT_NS);
		for (int i = 0; i < STREAMS; i++) {
			served_launch(kernel, stream[i], KERNEL_NS);
			MUST(cuEventRecord(event, stream[i]));
			MUST(cuStreamWaitEvent(stream[(i + 1) % STREAMS], event, 0));
		}
		MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .settle_ms = 12000, .attack = attack});
}
