/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of 0.2 s, each of which runs on beside others' work when its time is over. */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, 200 * MS);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
