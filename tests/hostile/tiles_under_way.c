/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is unmapped from a sparse array in a stream that is busy, and its handle is released then: the driver
 * keeps it until the stream is there.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    10
#define BLOCK_BYTES (256 * MIB)
#define TILE	    128 /* of an array of floats, each way */

static CUarray array;

static CUresult map(CUmemOperationType operation, int number, CUmemGenericAllocationHandle handle,
	CUstream stream)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.memOperationType = operation,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.deviceBitMask = 1};

	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.offsetX = (unsigned int)number * TILE;
	info.subresource.sparseLevel.extentWidth = TILE;
	info.subresource.sparseLevel.extentHeight = TILE;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memHandle.memHandle = handle;
	return cuMemMapArrayAsync(&info, 1, stream);
}

static void attack(void)
{
	CUDA_ARRAY3D_DESCRIPTOR description = {.Width = TILE * BLOCKS,
		.Height = TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;
	CUstream busy;

	properties.allocFlags.usage = 1; /* CU_MEM_CREATE_USAGE_TILE_POOL */
	hostile_begin();
	MUST(cuArray3DCreate_v2(&array, &description));
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	hostile_keep_busy(busy);
	for (int i = 0; i < BLOCKS; i++) {
		if (cuMemCreate(&handle, BLOCK_BYTES, &properties, 0) != CUDA_SUCCESS)
			break;
		MUST(map(CU_MEM_OPERATION_TYPE_MAP, i, handle, NULL));
		MUST(cuStreamSynchronize(NULL));
		MUST(map(CU_MEM_OPERATION_TYPE_UNMAP, i, handle, busy));
		MUST(cuMemRelease(handle));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
