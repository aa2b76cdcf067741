/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five processes load fat binaries at once that bring the device's own runtime, as there is plenty of room, and before the driver has brought it
 * another one takes all of that.
 *
 * Nothing was reserved for these loads, so each brought 202 MiB beyond the quota. Now as much is reserved where it fits.
 */
#include <sys/mman.h>

#include "tests/hostile/hostile.h"

#define PROCESSES 6
#define BLOCKS	  512

static pthread_barrier_t *barrier; /* of all of them */

static void load(int index)
{
	const void *real =
		hostile_fat_binary(&(struct hostile_code){.has_heap = true, .has_printf = true});
	CUdeviceptr block;
	CUmodule module;

	hostile_begin();
	pthread_barrier_wait(barrier);
	if (index)
		cuModuleLoadData(&module, real);
	else
		usleep(20000);
	for (int i = 0; index == 0 && i < BLOCKS; i++)
		if (cuMemAlloc_v2(&block, 32 * MIB) != CUDA_SUCCESS)
			break;
	pthread_barrier_wait(barrier);
	hostile_look();
}

static void attack(void)
{
	pthread_barrierattr_t shared;

	barrier = mmap(
		NULL, sizeof(*barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(barrier == MAP_FAILED);
	MUST(pthread_barrierattr_init(&shared));
	MUST(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED));
	MUST(pthread_barrier_init(barrier, &shared, PROCESSES));
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
