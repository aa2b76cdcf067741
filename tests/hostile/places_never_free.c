/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that waits for ever keeps all places busy that there are for streams. The long work is given to a stream of another
 * context: it may be what the others wait for, so it has to come to the device some time.
 */
#include "tests/hostile/served.h"

#define KERNEL_NS (20 * MS)

static void attack(void)
{
	served_without_place(0, KERNEL_NS);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 4000,
					 .is_of_two = true,
					 .least_permille = 250,
					 .attack = attack});
}
