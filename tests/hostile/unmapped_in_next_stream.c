/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is unmapped from a sparse array in a stream that is busy, and its handle is released then. Before the library's event is
 * recorded there, another thread destroys the stream and makes one of the same handle, which is idle.
 *
 * The memory was given back when the idle stream had passed the event, and the driver kept it.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define BLOCKS	     10
#define BLOCK_BYTES  (1024 * MIB)
#define TILE	     128 /* of an array of floats, each way */
#define STREAMS_MOST 64
#define CALLERS	     3 /* keep off the comparison that is owed */

static CUcontext context;
static CUarray array;
static CUstream stream;
static CUmemGenericAllocationHandle handle;
static int number; /* of the tile */

static CUresult map(CUmemOperationType operation, CUstream in)
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
	return cuMemMapArrayAsync(&info, 1, in);
}

static void *unmap(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	map(CU_MEM_OPERATION_TYPE_UNMAP, stream);
	return unused;
}

static void *call_often(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;)
		cuMemUnmap(0, 2 * MIB);
	return unused;
}

static void exchange_while_unmapped(CUevent event)
{
	CUstream next = NULL;
	pthread_t thread;

	MUST(cuStreamWaitEvent(stream, event, 0));
	MUST(pthread_create(&thread, NULL, unmap, NULL));
	usleep(20000);
	MUST(cuStreamDestroy_v2(stream));
	for (int i = 0; i < STREAMS_MOST && next != stream; i++)
		if (cuStreamCreate(&next, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
			break;
	MUST(pthread_join(thread, NULL));
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
	pthread_t thread;
	CUstream busy;
	CUevent event;

	properties.allocFlags.usage = 1; /* CU_MEM_CREATE_USAGE_TILE_POOL */
	context = hostile_begin();
	MUST(cuArray3DCreate_v2(&array, &description));
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 4; i++)
		hostile_keep_busy(busy);
	MUST(cuEventRecord(event, busy));
	for (int i = 0; i < CALLERS; i++) {
		MUST(pthread_create(&thread, NULL, call_often, NULL));
		usleep(17000);
	}
	for (; number < BLOCKS; number++) {
		if (cuMemCreate(&handle, BLOCK_BYTES, &properties, 0) != CUDA_SUCCESS ||
			cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
			break;
		MUST(map(CU_MEM_OPERATION_TYPE_MAP, NULL));
		MUST(cuStreamSynchronize(NULL));
		exchange_while_unmapped(event);
		MUST(cuMemRelease(handle));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuEventCreate", "cuMemUnmap"},
					  .is_slow_only = true,
					  .attack = attack});
}
