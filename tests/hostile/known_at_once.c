/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen processes give kernels that are known to be longer than a turn, and wait for none of them. Each let in one of its own,
 * all began in one turn, and each took as long as all of them.
 */
#include "tests/hostile/hostile.h"
#include "tests/hostile/served.h"

#define AT_ONCE	  16
#define KERNEL_NS (26 * MS)

static void run(int index)
{
	CUfunction kernel;

	(void)index;
	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, KERNEL_NS);
}

static void attack(void)
{
	hostile_processes(AT_ONCE, run);
}

int main(void)
{
	return served_beside_main(attack);
}
