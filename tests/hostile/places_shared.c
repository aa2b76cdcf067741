/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that waits for ever keeps all places busy that there are for streams, and those that there are for such as have waited
 * long. Nothing tells how long the work takes that comes after it.
 */
#include "tests/hostile/served.h"

#define KERNEL_NS (20 * MS)

static void attack(void)
{
	served_without_place(8, KERNEL_NS);
}

int main(int argc, char **argv)
{
	return served_main(argv,
		&(struct served){
			.cap_percent = 30, .settle_ms = 4000, .is_of_two = true, .attack = attack});
}
