/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exported descriptors get the mark of other memory of just their size, which is charged already. The process that has that
 * memory imports them all. It is given what it has.
 */
#include "tests/hostile/descriptors.h"

static void attack(void)
{
	descriptors_attack_by_mark(descriptors_create, GIB, descriptors_take_the_rest);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 3 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}
