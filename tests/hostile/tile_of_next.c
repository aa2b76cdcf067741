/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread maps a handle that is nobody's yet into an array. Before the driver is there another one creates memory, which gets that
 * handle, and releases it when it is mapped: as map_of_next.c, where nothing can be unmapped again at once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	    8
#define BLOCK_BYTES GIB
#define TILE	    128			/* of an array of floats, each way */
#define NEXT	    (UINT64_C(1) << 24) /* of the simulated node's numbers, the last one again first */
#define TO_MAP	    1
#define MAPPED	    2

static CUarray array;
static unsigned number;
static CUmemGenericAllocationHandle next;
static _Atomic int turn;
static CUcontext context;

static void map_tile(void)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.memOperationType = CU_MEM_OPERATION_TYPE_MAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.deviceBitMask = 1};

	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.offsetX = number++ * TILE;
	info.subresource.sparseLevel.extentWidth = TILE;
	info.subresource.sparseLevel.extentHeight = TILE;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memHandle.memHandle = next;
	cuMemMapArrayAsync(&info, 1, NULL);
}

static void *map(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		while (turn != TO_MAP)
			usleep(100);
		map_tile();
		turn = MAPPED;
	}
	return unused;
}

static CUresult create(uint64_t bytes, CUmemGenericAllocationHandle *handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	properties.allocFlags.usage = 1; /* CU_MEM_CREATE_USAGE_TILE_POOL */
	return cuMemCreate(handle, bytes, &properties, 0);
}

/* The mapping begins, the memory comes, is mapped, and is released before the mapping's end is looked at. */
static bool tile_next(void)
{
	CUmemGenericAllocationHandle handle;

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
	CUDA_ARRAY3D_DESCRIPTOR description = {.Width = TILE * ROUNDS,
		.Height = TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};
	CUmemGenericAllocationHandle handle;
	pthread_t thread;

	context = hostile_begin();
	MUST(cuArray3DCreate_v2(&array, &description));
	MUST(pthread_create(&thread, NULL, map, NULL));
	usleep(50000);
	MUST(create(2 * MIB, &handle));
	MUST(cuMemRelease(handle));
	next = handle;
	for (int i = 0; i < ROUNDS && tile_next(); i++)
		/* The place is taken by what is mapped: the next is a new one. */
		next = NEXT * ((unsigned int)i + 2);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuMemMapArrayAsync",
						  "cuMemGetAllocationPropertiesFromHandle"},
					  .is_slow_only = true,
					  .attack = attack});
}
