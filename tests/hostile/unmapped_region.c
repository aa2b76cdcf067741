/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes of a slice take memory, one after the other, and each unmaps what the library has of the region: the kernel
 * drops its lock on the slot, by which others know that it lives. None makes another call.
 */
#include "tests/hostile/signless.h"

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = signless_attack});
}
