/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fat binary with 4 GiB of variables is loaded, and a library with as many is used, while another thread's call for 4 GiB is
 * charged and has not come to the driver.
 *
 * What the process held beyond its books was taken for that memory, and then it came: 8.5 GiB were held in a slice of 6 GiB, and
 * more each time. Now what nobody can know beforehand is measured when no such call is under way, or not taken for it.
 */
#include "tests/hostile/hostile.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 4

static CUcontext primary;
static CUdeviceptr block;
static _Atomic bool is_asking;

static void *allocate(void *unused)
{
	MUST(cuCtxSetCurrent(primary));
	atomic_store(&is_asking, true);
	if (cuMemAlloc_v2(&block, 4 * GIB) != CUDA_SUCCESS)
		block = 0;
	return unused;
}

/* By a module, or by the first use of a library. */
static void load_beside(bool is_module)
{
	struct hostile_code code = {
		.variables = ".visible .global .align 4 .b8 data[0x100000000];"};
	CUlibrary library;
	CUmodule module = NULL;
	CUdeviceptr data;
	pthread_t thread;
	size_t bytes;

	MUST(cuLibraryLoadData(&library, hostile_fat_binary(&code), NULL, NULL, 0, NULL, NULL, 0));
	atomic_store(&is_asking, false);
	MUST(pthread_create(&thread, NULL, allocate, NULL));
	while (!atomic_load(&is_asking))
		usleep(100);
	usleep(10000);
	if (is_module)
		cuModuleLoadData(&module, hostile_fat_binary(&code));
	else
		cuLibraryGetGlobal(&data, &bytes, library, "data");
	MUST(pthread_join(thread, NULL));
	hostile_look();
	if (block)
		MUST(cuMemFree_v2(block));
	if (module)
		MUST(cuModuleUnload(module));
	MUST(cuLibraryUnload(library));
}

static void attack(void)
{
	primary = hostile_begin();
	/* The library asks NVML from the second second on. */
	usleep(1500000);
	MUST(cuMemAlloc_v2(&block, 2 * MIB));
	for (int i = 0; i < ROUNDS; i++)
		load_beside(i % 2);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 6 * GIB,
					  .slow_calls = {"cuMemAlloc_v2"},
					  .is_slow_only = true,
					  .is_brief = true,
					  .attack = attack});
}
