/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes give kernels of 100 ms that are known, and wait for none of them. Each had credit for one, whatever the others
 * owed, so all of them came one after the other.
 */
#include "tests/hostile/hostile.h"
#include "tests/hostile/served.h"

#define AT_ONCE	  8
#define KERNEL_NS (100 * MS)

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
