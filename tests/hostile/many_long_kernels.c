/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen honest processes with a kernel of 100 ms each, from the first one on, which nobody knows: what they overlap is charged
 * once, and what one owes comes before what the others may begin. A window of 5 s has one piece more or less than its share.
 */
#include "tests/hostile/served.h"

#define AT_ONCE 16

static void work(int index)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;) {
		served_launch(kernel, NULL, 100 * MS);
		MUST(cuStreamSynchronize(NULL));
	}
}

static void attack(void)
{
	hostile_processes(AT_ONCE, work);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 1000,
					 .allowance_permille = 30,
					 .least_permille = 100,
					 .attack = attack});
}
