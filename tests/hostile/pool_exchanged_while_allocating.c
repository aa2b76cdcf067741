/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread allocates from a pool that was imported, which gives nothing and is not charged. Before the driver is there another one destroys that
 * pool, and makes one of the device, which has its handle.
 *
 * Such a pool, and one of the host, could be destroyed while an allocation from it was under way: 8,710 MiB were held in a slice of 2 GiB. Now
 * the driver destroys it when none is.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define TRIES 20

static CUcontext context;
static CUmemoryPool pool;
static const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static void *allocate(void *unused)
{
	CUdeviceptr pointer;

	MUST(cuCtxSetCurrent(context));
	cuMemAllocFromPoolAsync(&pointer, 8 * GIB, pool, NULL);
	return unused;
}

static void attack(void)
{
	CUmemoryPool made, before;
	pthread_t thread;
	int fd;

	context = hostile_begin();
	MUST(cuMemPoolCreate(&made, &props));
	MUST(cuMemPoolExportToShareableHandle(
		&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemPoolImportFromShareableHandle(
		&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	before = pool;
	thread = hostile_begin_slowly(allocate);
	cuMemPoolDestroy(before);
	for (int i = 0; i < TRIES && (i == 0 || made != before); i++)
		MUST(cuMemPoolCreate(&made, &props));
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_slow_only = true,
					  .slow_calls = {"cuMemAllocFromPoolAsync"},
					  .attack = attack});
}
