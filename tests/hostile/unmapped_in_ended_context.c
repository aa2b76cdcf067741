/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is unmapped from a sparse array in a busy stream of another context, which is destroyed then, and its handle is released:
 * the driver keeps it until the stream's work would have ended, and the library's event ends with the context.
 *
 * As freed_in_ended_context.c, with a handle that goes before the context and after it, by turns: 7,686 MiB were held in a slice of 4,096.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	4
#define CALLERS 4
#define TILE	128 /* of an array of floats, each way */
#define BUSY_NS UINT64_C(2000000000)

static const char busy_code[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry busy(.param .u64 duration_ns)\n{\n"
	"\t.reg .b64 %rd<4>;\n\t.reg .pred %p<2>;\n"
	"\tld.param.u64 %rd1, [duration_ns];\n\tmov.u64 %rd2, %globaltimer;\n"
	"again:\n\tmov.u64 %rd3, %globaltimer;\n\tsub.u64 %rd3, %rd3, %rd2;\n"
	"\tsetp.lt.u64 %p1, %rd3, %rd1;\n\t@%p1 bra again;\n\tret;\n}\n";

struct other {
	CUcontext context;
	CUfunction busy;
	CUstream stream;
};

static CUcontext primary;
static CUarray array;

static void launch(const struct other *other, uint64_t duration_ns)
{
	void *parameters[] = {&duration_ns};

	MUST(cuLaunchKernel(other->busy, 1, 1, 1, 1, 1, 1, 0, other->stream, parameters, NULL));
}

static void make(struct other *other)
{
	CUmodule module;

	MUST(cuCtxCreate_v2(&other->context, 0, 0));
	MUST(cuStreamCreate(&other->stream, CU_STREAM_NON_BLOCKING));
	MUST(cuModuleLoadData(&module, busy_code));
	MUST(cuModuleGetFunction(&other->busy, module, "busy"));
	launch(other, 1000);
	MUST(cuStreamSynchronize(other->stream));
}

static void make_array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR description = {.Width = TILE * ROUNDS,
		.Height = TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};

	MUST(cuArray3DCreate_v2(&array, &description));
}

static void map(CUmemOperationType operation, int number, CUmemGenericAllocationHandle handle,
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
	MUST(cuMemMapArrayAsync(&info, 1, stream));
}

static void *call_often(void *unused)
{
	MUST(cuCtxSetCurrent(primary));
	for (;;)
		cuMemUnmap(0, 2 * MIB);
	return unused;
}

/* The handle is the last reference in the books by turns: released before the context ends, and after it. */
static bool unmap_in(const struct other *other, int round)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	properties.allocFlags.usage = 1; /* CU_MEM_CREATE_USAGE_TILE_POOL */
	MUST(cuCtxSetCurrent(primary));
	if (cuMemCreate(&handle, GIB, &properties, 0) != CUDA_SUCCESS)
		return false;
	map(CU_MEM_OPERATION_TYPE_MAP, round, handle, NULL);
	MUST(cuStreamSynchronize(NULL));
	MUST(cuCtxSetCurrent(other->context));
	launch(other, BUSY_NS);
	map(CU_MEM_OPERATION_TYPE_UNMAP, round, handle, other->stream);
	if (round % 2)
		MUST(cuMemRelease(handle));
	MUST(cuCtxDestroy_v2(other->context));
	if (round % 2 == 0)
		MUST(cuMemRelease(handle));
	return true;
}

static void attack(void)
{
	struct other others[ROUNDS];
	CUdeviceptr block;
	pthread_t thread;

	primary = hostile_begin();
	make_array();
	for (int i = 0; i < ROUNDS; i++)
		make(&others[i]);
	for (int i = 0; i < CALLERS; i++)
		MUST(pthread_create(&thread, NULL, call_often, NULL));
	for (int i = 0; i < ROUNDS && unmap_in(&others[i], i); i++)
		;
	MUST(cuCtxSetCurrent(primary));
	cuMemAlloc_v2(&block, 3 * GIB);
	hostile_look();
}

/* Whether a card's driver takes such a call in a stream of another context was not tried. */
int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 4 * GIB, .is_simulated_only = true, .attack = attack});
}
