/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen streams work one after the other, each waiting for an event of the one before. */
#include "tests/hostile/served.h"

#define STREAMS	  16
#define KERNEL_NS (2 * MS)

static void attack(void)
{
	CUstream stream[STREAMS];
	CUevent event[STREAMS];
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STREAMS; i++) {
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		MUST(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
	}
	for (unsigned round = 0;; round++)
		for (int i = 0; i < STREAMS; i++) {
			if (round || i)
				MUST(cuStreamWaitEvent(
					stream[i], event[(i + STREAMS - 1) % STREAMS], 0));
			served_launch(kernel, stream[i], KERNEL_NS);
			MUST(cuEventRecord(event[i], stream[i]));
		}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 290, .attack = attack});
}
