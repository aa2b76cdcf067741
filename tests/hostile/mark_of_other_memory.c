/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exported descriptor gets the mark of other memory, which is a little larger and charged already. Another process
 * imports it, and the one that made it ends. A mark is believed of memory of just its size alone.
 */
#include "tests/hostile/descriptors.h"

static void attack(void)
{
	descriptors_attack_by_mark(descriptors_create, GIB + 2 * MIB, NULL);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 3 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}
