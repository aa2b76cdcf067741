/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exported descriptors get the mark of other memory of just their size, which is charged already, as a descriptor keeps it.
 * A process that has no handle of that memory imports them all. Nothing tells the first from it, so it has one more than it
 * is charged for, and is given that one again for the rest.
 */
#include "tests/hostile/descriptors.h"

static void attack(void)
{
	descriptors_attack_by_mark(descriptors_create_kept, GIB, descriptors_take_the_rest);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB + 512 * MIB,
					  .allowance_bytes = GIB,
					  .is_brief = true,
					  .attack = attack});
}
