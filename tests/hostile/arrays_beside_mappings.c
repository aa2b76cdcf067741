/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As arrays_beside_frees, and three more threads of each process map and unmap memory again and again, so that one of them is in such
 * a call at any moment: no call is the last one to end, which would compare the books.
 *
 * That comparison was never made. What arrays may have taken is now looked for beside calls that are under way, too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/hostile/hostile.h"

#define MAKERS	3
#define MAPPERS 3
#define ARRAYS	500

static struct shared {
	_Atomic int begun, done, over;
} * shared;

static CUcontext context;

static void *map(void *argument)
{
	const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	MUST(cuCtxSetCurrent(context));
	MUST(cuMemCreate(&handle, 2 * MIB, &properties, 0));
	MUST(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	while (!atomic_load(&shared->over)) {
		MUST(cuMemMap(at, 2 * MIB, 0, handle, 0));
		MUST(cuMemUnmap(at, 2 * MIB));
	}
	return argument;
}

static void make(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = 1024,
		.Height = 352,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1};
	pthread_t mappers[MAPPERS];
	CUarray array;

	context = hostile_begin();
	for (int i = 0; i < MAPPERS; i++) {
		MUST(pthread_create(&mappers[i], NULL, map, NULL));
		usleep(17000);
	}
	atomic_fetch_add(&shared->begun, 1);
	while (atomic_load(&shared->begun) <= MAKERS)
		usleep(100);
	for (int i = 0; i < ARRAYS; i++) {
		cuArray3DCreate_v2(&array, &descriptor);
		usleep(50);
	}
	atomic_fetch_add(&shared->done, 1);
	for (int i = 0; i < MAPPERS; i++)
		MUST(pthread_join(mappers[i], NULL));
}

static void take_the_rest(void)
{
	CUdeviceptr at;

	hostile_begin();
	atomic_fetch_add(&shared->begun, 1);
	while (atomic_load(&shared->done) < MAKERS)
		if (cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS)
			cuMemFree_v2(at);
	for (int i = 0; i < 5000 && cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS; i++)
		;
	hostile_look();
	atomic_store(&shared->over, 1);
}

static void run(int index)
{
	if (index < MAKERS)
		make();
	else
		take_the_rest();
}

static void attack(void)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	hostile_processes(MAKERS + 1, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){
			.quota_bytes = 6 * GIB, .slow_calls = {"cuMemMap"}, .attack = attack});
}
