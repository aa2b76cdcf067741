/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, where the region lies on an overlay: there a process lives for others as long as a segment of System V
 * shared memory is attached, which it detaches.
 */
#include "tests/hostile/signless.h"

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 2 * GIB, .is_on_overlay = true, .attack = signless_attack});
}
