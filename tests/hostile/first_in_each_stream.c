/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1, and one short kernel in each of 16 streams by turns, so that each is the first in its stream after a pause. Such a one was
 * taken to begin when its launch had come back, and it was done then: 95 % of the device at a cap of 30. Now what has ended by then began within the
 * call.
 */
#include <stdlib.h>

#include "tests/hostile/served.h"

#define KNOWN	  40
#define STREAMS	  16
#define KERNEL_NS 9500

static void attack(void)
{
	CUstream streams[STREAMS];
	CUfunction kernel;

	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	served_begin();
	kernel = served_kernel();
	for (unsigned i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	served_make_known(kernel, KNOWN, KERNEL_NS);
	for (unsigned n = 0;; n++)
		served_launch(kernel, streams[n % STREAMS], KERNEL_NS);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .fills_device = true,
					 .window_ms = 1500,
					 .attack = attack});
}
