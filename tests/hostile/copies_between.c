/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short kernels with long copies from the host between them, all in one stream: what was given behind a copy counted as work that is under way, so the slice
 * kept its turn, and nobody was charged for that.
 */
#include "tests/hostile/served.h"

static void attack(void)
{
	CUstream work;

	served_begin();
	MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	served_copies_between(work, work);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 10, .least_permille = 90, .attack = attack});
}
