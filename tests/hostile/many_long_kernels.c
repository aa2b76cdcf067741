/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen honest processes with a kernel of 100 ms each at the same time: what they overlap is charged once. A round of
 * them takes 1.6 s, and the slice may have one in 5.3 s, so no window of 5 s has just its share.
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
					 .settle_ms = 60000,
					 .allowance_permille = 30,
					 .least_permille = 100,
					 .attack = attack});
}
