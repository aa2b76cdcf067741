/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of an exported descriptor is taken off and, in its place, another one says that the memory is small. Another
 * process imports it, and the one that made it ends.
 */
#include "tests/hostile/descriptors.h"

static void forge(int fd, int round)
{
	uint64_t id = descriptors_mark_of(fd) + ((uint64_t)(round + 77) << 22);

	descriptors_set_mark(fd, id, 1);
}

static void attack(void)
{
	descriptors_attack(&(struct descriptors){.forge = forge});
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 2 * GIB + 512 * MIB, .is_brief = true, .attack = attack});
}
