/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen processes at a time begin with a kernel that nobody knows, and end: what each takes before it is known is owed by
 * those that come after it. The first of them all owe nothing yet, so it is judged after 6 s.
 */
#include "tests/hostile/served.h"

#define AT_ONCE 16

static void run(int index)
{
	served_process_per_kernel(100 * MS);
}

static void attack(void)
{
	hostile_processes(AT_ONCE, run);
}

int main(int argc, char **argv)
{
	return served_main(argv,
		&(struct served){.cap_percent = 30,
			.settle_ms = 6000,
			/* a window may begin behind one piece's debt, and end with the next one */
			.allowance_permille = 20,
			.least_permille = 290,
			.idles_card = true,
			.attack = attack});
}
