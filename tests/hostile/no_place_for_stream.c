/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams with hardly anything to do keep all places busy that there are for streams. The long work is given to a stream
 * of another context, which finds none.
 */
#include "tests/hostile/served.h"

#define STREAMS	  127 /* and the default one */
#define SHORT_NS  2000
#define KERNEL_NS (7 * MS)

static void attack(void)
{
	CUcontext first, second;
	CUstream stream[STREAMS], other;
	CUfunction kernel, elsewhere;

	first = served_begin();
	kernel = served_kernel();
	for (int i = 0; i < STREAMS; i++)
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	served_launch(kernel, NULL, SHORT_NS);
	second = served_context();
	elsewhere = served_kernel();
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (;;) {
		MUST(cuCtxSetCurrent(first));
		for (int i = 0; i < STREAMS; i++)
			served_launch(kernel, stream[i], SHORT_NS);
		served_launch(kernel, NULL, SHORT_NS);
		MUST(cuCtxSetCurrent(second));
		served_launch(elsewhere, other, KERNEL_NS);
		MUST(cuStreamSynchronize(other));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
