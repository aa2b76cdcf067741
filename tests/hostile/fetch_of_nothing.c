/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program gives long work of a function that is known as short, and then copies no bytes to the host. That returns at once, and
 * looks like a wait for all that the stream was given before. Then it sleeps until the work is over.
 */
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  20000
#define KERNEL_NS (40 * MS)

static void attack(void)
{
	CUfunction kernel;
	CUdeviceptr block;
	char word[8];

	served_begin();
	MUST(cuMemAlloc_v2(&block, 4096));
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		served_launch(kernel, NULL, KERNEL_NS);
		MUST(cuMemcpyDtoH_v2(word, block, 0));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
