/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five processes load fat binaries at once that bring the device's own runtime, as there is plenty of room, and before the driver has brought it
 * another one takes all of that.
 *
 * Nothing was reserved for these loads, so each brought 202 MiB beyond the quota. Now as much is reserved where it fits.
 */
#include "tests/hostile/hostile.h"

#define PROCESSES 6
#define BLOCKS	  512
#define BEFORE_US 20000	 /* until the others' loads are under way */
#define ALL_US	  300000 /* until all of them are done */

static void load(int index)
{
	const void *real =
		hostile_fat_binary(&(struct hostile_code){.has_heap = true, .has_printf = true});
	CUdeviceptr block;
	CUmodule module;

	hostile_begin();
	hostile_meet(PROCESSES);
	if (index)
		cuModuleLoadData(&module, real);
	else
		usleep(BEFORE_US);
	for (int i = 0; index == 0 && i < BLOCKS; i++)
		if (cuMemAlloc_v2(&block, 32 * MIB) != CUDA_SUCCESS)
			break;
	usleep(ALL_US);
	hostile_look();
}

static void attack(void)
{
	hostile_processes(PROCESSES, load);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 8 * GIB,
					  .allowance_bytes = 202 * MIB,
					  .is_slow_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}
