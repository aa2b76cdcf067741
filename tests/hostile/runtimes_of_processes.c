/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same as runtimes_at_once, each context in a process of its own, which has filled the slice but for 2 MiB.
 */
#include <sys/mman.h>

#include "tests/hostile/hostile.h"

#define PROCESSES 6

static pthread_barrier_t *barrier; /* of all of them */

static void load(int index)
{
	const void *real =
		hostile_fat_binary(&(struct hostile_code){.has_heap = true, .has_printf = true});
	CUdeviceptr own, last;
	CUmodule module;

	hostile_begin();
	MUST(cuMemAlloc_v2(&own, 2 * MIB));
	pthread_barrier_wait(barrier);
	for (int i = 0; index == 0 && i < 2048; i++)
		if (cuMemAlloc_v2(&last, 2 * MIB) != CUDA_SUCCESS)
			break;
	pthread_barrier_wait(barrier);
	MUST(cuMemFree_v2(own));
	pthread_barrier_wait(barrier);
	cuModuleLoadData(&module, real);
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
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .allowance_bytes = 202 * MIB,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}
