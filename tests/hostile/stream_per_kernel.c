/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for each long kernel, whose function is known as short. It is not waited for, and the stream is given nothing
 * after it, so nothing there is measured any more: what it hides is found out by chance, in other streams.
 */
#include "tests/hostile/served.h"

#define KNOWN	  40 /* pieces, after which the kernel's time is known */
#define SHORT_NS  20000
#define KERNEL_NS (5 * MS)

static void attack(void)
{
	CUfunction kernel;
	CUstream stream;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		served_make_known(kernel, KNOWN, SHORT_NS);
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		served_launch(kernel, stream, SHORT_NS);
		served_launch(kernel, stream, KERNEL_NS);
		served_sleep(KERNEL_NS + SHORT_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	/*
	 * One kernel in eight is doubted, at random, and then those after the next 64 pauses are measured, for 1.1 s. So 8 of
	 * 5 ms are hidden in the first 1.1 s, 4 % of the device, and less after it.
	 */
	return served_main(argv,
		&(struct served){.cap_percent = 30, .allowance_permille = 50, .attack = attack});
}
