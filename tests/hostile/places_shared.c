/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that waits for ever keeps all places busy that there are for streams, and those that there are for such as have waited
 * long. Nothing tells how long the work takes that comes after it.
 */
#include "tests/hostile/served.h"

#define KERNEL_NS (20 * MS)

static void attack(void)
{
	CUfunction kernel;
	CUstream stream;

	MUST(cuInit(0));
	served_fill_places(8);
	served_context();
	kernel = served_kernel();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (;;) {
		served_launch(kernel, stream, KERNEL_NS);
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 4000,
					 .is_of_two = true,

					 .attack = attack});
}
