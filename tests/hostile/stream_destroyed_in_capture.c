/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream is given long work, which is known as short. Then a capture of it begins, in which no event can be recorded behind that work,
 * and the stream is destroyed.
 */
#include "tests/hostile/served.h"

#define KNOWN	  10
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static void attack(void)
{
	CUstream stream, other;
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (;;) {
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		served_launch(kernel, stream, SHORT_NS);
		served_launch(kernel, stream, KERNEL_NS);
		MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		MUST(cuStreamDestroy_v2(stream));
		served_sleep(SHORT_NS);
		MUST(cuStreamSynchronize(other));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
