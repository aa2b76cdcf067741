/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads give a graph each that nobody has seen before, of 100 ms. While the driver takes them none has begun, so nothing tells that
 * others are given; and while one runs, the others wait at the gate and keep the turn for it, of which no more was announced than for any
 * new work.
 */
#define KERNEL_NS (100 * MS)
#include "tests/hostile/unknown_by_threads.h"

int main(int argc, char **argv)
{
	/* Four at once, of 100 ms, may end a window of 5 s. */
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .allowance_permille = 90,
					 .slow_call = "cuGraphLaunch",
					 .is_slow_on_card = true,
					 .fills_device = true,
					 .attack = unknowns_attack});
}
