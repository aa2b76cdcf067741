/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four processes give kernels of 150 ms that are known, and wait for each. Who waits cannot look at his turn: it lasts as long as the
 * work was announced to take, or that runs on beside others', and each is charged for both.
 */
#include "tests/hostile/hostile.h"
#include "tests/hostile/served.h"

#define AT_ONCE	  4
#define KERNEL_NS (150 * MS)

static void run(int index)
{
	CUfunction kernel;

	(void)index;
	served_begin();
	kernel = served_kernel();
	for (;;) {
		served_launch(kernel, NULL, KERNEL_NS);
		MUST(cuStreamSynchronize(NULL));
	}
}

static void attack(void)
{
	hostile_processes(AT_ONCE, run);
}

int main(void)
{
	return served_beside_main(attack);
}
