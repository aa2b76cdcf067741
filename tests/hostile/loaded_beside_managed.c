/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has not asked NVML yet loads data of which a fat binary tells nothing, while managed memory goes to the host: what is
 * free does not show what the load took. Then the managed memory comes back, and the process makes no more calls.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define LOADERS 4

static struct shared {
	_Atomic int turn, begun, ended; /* of the loaders, which count from 1 on */
	_Atomic bool is_over;
} * all;

/* Half of a slow call after the load has begun, between both questions for what is free. */
static void move_beside(int loader, CUdeviceptr managed)
{
	atomic_store(&all->turn, loader);
	while (atomic_load(&all->begun) < loader)
		usleep(100);
	usleep(75000);
	MUST(cuMemPrefetchAsync(managed, GIB, CU_DEVICE_CPU, NULL));
	while (atomic_load(&all->ended) < loader)
		usleep(100);
	MUST(cuMemPrefetchAsync(managed, GIB, 0, NULL));
}

static void load(int loader)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x40000000];"};
	bool has_context;
	CUmodule module;

	while (atomic_load(&all->turn) < loader)
		usleep(1000);
	has_context = hostile_try_begin();
	atomic_store(&all->begun, loader);
	if (has_context)
		cuModuleLoadData(&module, hostile_fat_binary(&code));
	atomic_store(&all->ended, loader);
	while (!atomic_load(&all->is_over))
		usleep(1000);
	_exit(0);
}

static void attack(void)
{
	CUdeviceptr managed;

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(all == MAP_FAILED);
	for (int i = 1; i <= LOADERS; i++)
		if (fork() == 0)
			load(i);
	hostile_begin();
	MUST(cuMemAllocManaged(&managed, GIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemPrefetchAsync(managed, GIB, 0, NULL));
	for (int i = 1; i <= LOADERS; i++) {
		move_beside(i, managed);
		hostile_look();
	}
	atomic_store(&all->is_over, true);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .slow_calls = {"cuMemGetInfo_v2"},
					  .is_brief = true,
					  .attack = attack});
}
