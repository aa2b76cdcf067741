/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More streams at work than the library tells apart. All but one have hardly anything to do, and the long work is given
 * to one that has no place of its own.
 */
#include "tests/hostile/served.h"

#define STREAMS	  160
#define SHORT_NS  20000
#define KERNEL_NS (20 * MS)

static void attack(void)
{
	CUstream stream[STREAMS];
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	for (;;) {
		for (int i = 0; i < STREAMS - 1; i++)
			served_launch(kernel, stream[i], SHORT_NS);
		served_launch(kernel, stream[STREAMS - 1], KERNEL_NS);
		MUST(cuStreamSynchronize(stream[STREAMS - 1]));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
