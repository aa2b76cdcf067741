/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process for each kernel: it ends, or is killed, when its kernel is done, and nobody in it has asked for that. What it
 * was expected to take, and what was learned of it, would end with the process.
 */
#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

static void attack(void)
{
	counted_crowd(8);
	served_process_per_kernel(50 * MS);
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30,
			      .least_permille = 280, /* a window may end within a kernel */
			      .idles_card = true,
			      .attack = attack});
}
