/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of an exported descriptor is taken off. Another process imports it and maps nothing, and the one that made the
 * memory ends. It was charged when it was mapped, and now when it is imported, for the size that it turns out to have.
 */
#include "tests/hostile/descriptors.h"

static void forge(int fd, int round)
{
	descriptors_take_off_mark(fd);
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
