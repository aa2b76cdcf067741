/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program gives short work, and right behind it work of the same function that takes long. It sleeps until that is over,
 * and only then waits for it: the wait returns at once, and tells nothing of when the work ended.
 */
#include "tests/hostile/served.h"

#define SHORT_NS  20000
#define KERNEL_NS (20 * MS)

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		for (int i = 0; i < 64; i++)
			served_launch(kernel, NULL, SHORT_NS);
		MUST(cuStreamSynchronize(NULL));
		served_launch(kernel, NULL, SHORT_NS);
		served_launch(kernel, NULL, KERNEL_NS);
		served_sleep(KERNEL_NS + MS);
		MUST(cuStreamSynchronize(NULL));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
