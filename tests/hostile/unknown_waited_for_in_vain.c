/* SPDX-License-Identifier: Apache-2.0 */
/* As unknown_by_threads.c, of graphs that run for longer than the gate waits for one that may never end. */
#define KERNEL_NS (300 * MS)
#include "tests/hostile/unknown_by_threads.h"

int main(int argc, char **argv)
{
	/* Four at once, and one more each 0.25 s until the first has ended; all of them are owed then. */
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .allowance_permille = 270,
					 .slow_call = "cuGraphLaunch",
					 .is_slow_on_card = true,
					 .fills_device = true,
					 .attack = unknowns_attack});
}
