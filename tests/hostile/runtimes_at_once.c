/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slice is filled but for 2 MiB for each of six contexts. Then six threads load at once, each in a context of its own, a fat binary that uses
 * the device's own runtime: for each 2 MiB are reserved, and the driver takes 202 MiB, which stay when it has been unloaded again.
 *
 * SECURITY.md says that the slice may be above its quota by the rest of one: 5,294 MiB were held in a slice of 4 GiB. Now such loads go one after
 * the other.
 */
#include "tests/hostile/hostile.h"

#define CONTEXTS 6

static const void *real;
static CUcontext contexts[CONTEXTS];
static pthread_barrier_t barrier;

static void *load(void *index)
{
	CUmodule module;

	MUST(cuCtxSetCurrent(contexts[(uintptr_t)index]));
	pthread_barrier_wait(&barrier);
	cuModuleLoadData(&module, real);
	return NULL;
}

static void attack(void)
{
	pthread_t threads[CONTEXTS];
	CUdeviceptr blocks[CONTEXTS + 1], last;

	real = hostile_fat_binary(&(struct hostile_code){.has_heap = true, .has_printf = true});
	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
	for (int i = 0; i <= CONTEXTS; i++)
		MUST(cuMemAlloc_v2(&blocks[i], 2 * MIB));
	for (int i = 0; i < 2048 && cuMemAlloc_v2(&last, 2 * MIB) == CUDA_SUCCESS; i++)
		;
	for (int i = 0; i <= CONTEXTS; i++)
		MUST(cuMemFree_v2(blocks[i]));
	MUST(pthread_barrier_init(&barrier, NULL, CONTEXTS));
	for (uintptr_t i = 0; i < CONTEXTS; i++)
		MUST(pthread_create(&threads[i], NULL, load, (void *)i));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(pthread_join(threads[i], NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .allowance_bytes = 202 * MIB,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}
