/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes take memory, fork a child that does nothing, and end. The child has the driver's files open, so the memory stays.
 *
 * What a process held was given back with its end: three such processes had 4.5 GiB in a slice of 2 GiB. Now it stays charged
 * until the children have ended, too.
 */
#include "tests/hostile/descriptors.h"

static void take_and_leave(int index)
{
	CUdeviceptr block;

	if (hostile_try_begin())
		cuMemAlloc_v2(&block, 1 * GIB);
	descriptors_leave_child();
}

static void attack(void)
{
	descriptors_in_turn(3, take_and_leave);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
