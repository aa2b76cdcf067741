/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a descriptor keeps is freed while managed memory goes to the host: as much becomes
 * free as if the descriptor kept none. Then the managed memory comes back.
 */
#include "tests/hostile/within_free.h"

static CUdeviceptr managed;

static void prepare(void)
{
	MUST(cuMemAllocManaged(&managed, GIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cuMemPrefetchAsync(managed, GIB, 0, NULL));
}

static void act_within(void)
{
	MUST(cuMemPrefetchAsync(managed, GIB, CU_DEVICE_CPU, NULL));
}

static void act_afterwards(void)
{
	MUST(cuMemPrefetchAsync(managed, GIB, 0, NULL));
}

static void free_one(void)
{
	CUdeviceptr block;

	if (take_kept(&block))
		free_watched(block);
}
