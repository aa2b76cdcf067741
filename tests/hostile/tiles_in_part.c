/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a list of tiles the first is mapped, and the second refused: the call fails, and the first stays mapped. Then its memory's
 * handle is released. Once more with a list that unmaps the first: that must not pass for mapped on either.
 *
 * All references of a list that failed were taken back: 10,758 MiB were held in a slice of 2,048. Now they stay until the
 * array ends, or all of their part is mapped or unmapped anew.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    10
#define BLOCK_BYTES GIB
#define TILE	    128 /* of an array of floats, each way */

static CUarray array;

static CUarrayMapInfo part(int number, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.deviceBitMask = 1};

	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.offsetX = (unsigned)number * TILE;
	info.subresource.sparseLevel.extentWidth = TILE;
	info.subresource.sparseLevel.extentHeight = TILE;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memHandle.memHandle = handle;
	return info;
}

/* Maps the memory, or unmaps what is there, in the first of two parts; the driver refuses the second. */
static void change_in_part(int number, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo list[] = {part(number, handle), part(number, handle)};

	list[1].flags = 1; /* none is known */
	MUST(cuMemMapArrayAsync(list, 2, NULL) == CUDA_SUCCESS);
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
	CUarrayMapInfo whole;

	hostile_begin();
	/* When the array has ended, all of it is to be had again. */
	for (int round = 0; round < 3; round++) {
		make_array();
		MUST(create(&handle));
		whole = part(0, handle);
		MUST(cuMemMapArrayAsync(&whole, 1, NULL));
		change_in_part(0, 0);
		change_in_part(1, handle);
		MUST(cuMemRelease(handle));
		MUST(cuArrayDestroy(array));
	}
	make_array();
	for (int i = 0; i < BLOCKS && create(&handle) == CUDA_SUCCESS; i++) {
		change_in_part(i, handle);
		MUST(cuMemRelease(handle));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
