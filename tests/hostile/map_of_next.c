/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread maps a handle that is nobody's yet. Before the driver is there another one creates memory, which gets that handle, and
 * releases it when it is mapped: at the end the handle is nobody's again, and the mapping keeps the memory.
 *
 * The driver's refusal to tell what the handle is passed for memory on the host: 6,662 MiB were held in a slice of 2,048 until a
 * comparison. Now a handle of which the driver tells nothing is not mapped.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	    8
#define BLOCK_BYTES GIB
#define NEXT	    (UINT64_C(1) << 24) /* of the simulated node's numbers, the last one again first */
#define TO_MAP	    1
#define MAPPED	    2

static CUdeviceptr at;
static CUmemGenericAllocationHandle next;
static _Atomic int turn;
static CUcontext context;

static void *map(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		while (turn != TO_MAP)
			usleep(100);
		cuMemMap(at, BLOCK_BYTES, 0, next, 0);
		turn = MAPPED;
	}
	return unused;
}

static CUresult create(uint64_t bytes, CUmemGenericAllocationHandle *handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	return cuMemCreate(handle, bytes, &properties, 0);
}

/* The mapping begins, the memory comes, is mapped, and is released before the mapping's end is looked at. */
static bool map_next(void)
{
	CUmemGenericAllocationHandle handle;

	MUST(cuMemAddressReserve(&at, BLOCK_BYTES, 0, 0, 0));
	turn = TO_MAP;
	usleep(70000);
	if (create(BLOCK_BYTES, &handle) != CUDA_SUCCESS)
		return false;
	usleep(55000);
	/* Without the library there is nothing to get round. */
	if (getenv("LD_PRELOAD"))
		MUST(cuMemRelease(handle));
	while (turn != MAPPED)
		usleep(100);
	return true;
}

static void attack(void)
{
	CUmemGenericAllocationHandle handle;
	pthread_t thread;

	context = hostile_begin();
	MUST(pthread_create(&thread, NULL, map, NULL));
	usleep(50000);
	MUST(create(2 * MIB, &handle));
	MUST(cuMemRelease(handle));
	next = handle;
	for (int i = 0; i < ROUNDS && map_next(); i++)
		/* The place is taken by what is mapped: the next is a new one. */
		next = NEXT * ((unsigned int)i + 2);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 2 * GIB,
			      .slow_calls = {"cuMemMap", "cuMemGetAllocationPropertiesFromHandle"},
			      .is_slow_only = true,
			      .attack = attack});
}
