/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is mapped into the tail of a sparse array's levels, and a part of the tail is unmapped whose end does not fit 64 bits. Then
 * the memory's handle is released.
 *
 * The books took the mapping for one that lies within that part, and the simulated driver does not: 10,758 MiB were held in a slice of 2,048.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    10
#define BLOCK_BYTES GIB
#define TILE	    128 /* of an array of floats, each way */

static CUarray array;

static CUarrayMapInfo tail(int number, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.deviceBitMask = 1};
	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	info.subresource.miptail.offset = 65536ull * (number + 1);
	info.subresource.miptail.size = handle ? 65536 : ~0ull;
	info.memHandle.memHandle = handle;
	return info;
}

static void make_array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR description = {.Width = TILE * BLOCKS,
		.Height = TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};

	MUST(cuArray3DCreate_v2(&array, &description));
}

static CUresult create(CUmemGenericAllocationHandle *handle)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	properties.allocFlags.usage = 1; /* CU_MEM_CREATE_USAGE_TILE_POOL */
	return cuMemCreate(handle, BLOCK_BYTES, &properties, 0);
}

static void attack(void)
{
	CUmemGenericAllocationHandle handle;
	CUarrayMapInfo part;

	hostile_begin();
	make_array();
	for (int i = 0; i < BLOCKS && create(&handle) == CUDA_SUCCESS; i++) {
		part = tail(i, handle);
		/* A card refuses it (H200, 580). */
		if (cuMemMapArrayAsync(&part, 1, NULL) != CUDA_SUCCESS)
			break;
		part = tail(i, 0);
		(void)cuMemMapArrayAsync(&part, 1, NULL);
		MUST(cuMemRelease(handle));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
