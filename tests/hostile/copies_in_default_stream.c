/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long copies from the host in the default stream, and short kernels in another one, which wait for it without a call that says so: each was charged from the end
 * of the one before it, and the program had 4.5 % of the device at a cap of 10.
 */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUstream work;

	served_begin();
	MUST(cuStreamCreate(&work, CU_STREAM_DEFAULT));
	served_copies_between(NULL, work);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 10, .least_permille = 90, .attack = attack});
}
