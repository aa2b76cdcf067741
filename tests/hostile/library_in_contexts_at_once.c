/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library from a fat binary has 1.25 GiB of variables. It is used for the first time while other threads allocate, so
 * that nobody can say for certain what it took, and then in six contexts at once.
 *
 * Each of the six uses was judged before the others were charged, and a library that was used somewhere cannot be
 * unloaded: 12 GiB were held in a slice of 5.5.
 */
#include "tests/hostile/hostile.h"

#include <pthread.h>
#include <stdatomic.h>

#define CONTEXTS 6
#define NOISES	 3

static CUcontext contexts[CONTEXTS], first;
static CUlibrary library;
static pthread_barrier_t barrier;
static atomic_bool is_quiet;

static void *make_noise(void *unused)
{
	CUdeviceptr block;

	cuCtxSetCurrent(first);
	while (!is_quiet)
		if (cuMemAlloc_v2(&block, 2 * MIB) == CUDA_SUCCESS)
			cuMemFree_v2(block);
	return unused;
}

static void *use(void *context)
{
	CUdeviceptr data;
	size_t bytes;

	cuCtxSetCurrent(context);
	pthread_barrier_wait(&barrier);
	cuLibraryGetGlobal(&data, &bytes, library, "data");
	return NULL;
}

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x50000000];"};
	pthread_t users[CONTEXTS], noises[NOISES];
	CUdeviceptr data;
	size_t bytes;

	first = hostile_begin();
	for (int i = 0; i < CONTEXTS; i++)
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
	MUST(cuCtxSetCurrent(first));
	/* The library asks NVML from the second second on. */
	usleep(1500000);
	MUST(cuMemAlloc_v2(&data, 2 * MIB));
	MUST(cuLibraryLoadData(&library, hostile_fat_binary(&code), NULL, NULL, 0, NULL, NULL, 0));
	for (int i = 0; i < NOISES; i++)
		MUST(pthread_create(&noises[i], NULL, make_noise, NULL));
	usleep(10000);
	MUST(cuLibraryGetGlobal(&data, &bytes, library, "data"));
	is_quiet = true;
	for (int i = 0; i < NOISES; i++)
		MUST(pthread_join(noises[i], NULL));
	MUST(pthread_barrier_init(&barrier, NULL, CONTEXTS));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(pthread_create(&users[i], NULL, use, contexts[i]));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(pthread_join(users[i], NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 5 * GIB + 512 * MIB,
					  .slow_calls = {"cuLibraryGetGlobal"},
					  .attack = attack});
}
