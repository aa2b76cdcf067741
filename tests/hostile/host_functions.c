/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of kernels and functions of the host in two streams: each stream's kernel waits for the function before it, which
 * the driver calls when the other stream's kernel is done. Nobody waits for a kernel but the driver, until the chain is over.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define STREAMS	  2
#define LINKS	  8
#define KERNEL_NS (5 * MS)

static void touch(void *count)
{
	++*(unsigned *)count;
}

static void attack(void)
{
	static unsigned count;
	CUstream stream[STREAMS];
	CUevent event[STREAMS];
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STREAMS; i++) {
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
		MUST(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
	}
	counted_note(LINKS * KERNEL_NS);
	for (;;) {
		for (int i = 0; i < LINKS; i++) {
			int at = i % STREAMS;

			if (i)
				MUST(cuStreamWaitEvent(stream[at], event[!at], 0));
			served_launch(kernel, stream[at], KERNEL_NS);
			MUST(cuLaunchHostFunc(stream[at], touch, &count));
			MUST(cuEventRecord(event[at], stream[at]));
		}
		MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .least_permille = 290, .attack = attack});
}
