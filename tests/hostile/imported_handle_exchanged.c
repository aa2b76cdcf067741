/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While memory is imported, and is measured, another thread releases the handle that it has got, and creates memory of 2 MiB, which has that handle
 * then. So one more reference to the small memory was noted than there is, and when it is released its handle is still known: memory of
 * a process that ends is imported then, and has it.
 *
 * What is imported counted as one more reference to whichever memory was known by the handle: 11,280 MiB were held in a slice of 4 GiB by nobody
 * who was charged for it. Now what is known there has to be charged for as much.
 */
#include <pthread.h>

#include "tests/hostile/descriptors.h"

#define SMALL_BYTES (2 * MIB)

static CUcontext context;
static int small_fd;
static CUmemGenericAllocationHandle imported;

static CUmemGenericAllocationHandle create(uint64_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	MUST(cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

static void *import_small(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	imported = descriptors_import(small_fd);
	return unused;
}

/* What it imports gets the handle of what was released last. */
static void import(int fd)
{
	CUmemGenericAllocationHandle next = create(SMALL_BYTES), small;
	pthread_t thread;

	MUST(cuCtxGetCurrent(&context));
	MUST(cuMemExportToShareableHandle(
		&small_fd, next, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	MUST(cuMemRelease(next));
	/* It is the question after the import that is slow; without the library there is none. */
	thread = hostile_begin_slowly(import_small);
	cuMemRelease(next);
	small = create(SMALL_BYTES);
	MUST(pthread_join(thread, NULL));
	if (imported != small)
		cuMemRelease(imported);
	cuMemRelease(small);
	(void)descriptors_import(fd);
}

static void attack(void)
{
	descriptors_attack(&(struct descriptors){.rounds = 10, .import = import});
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .is_slow_only = true,
					  .slow_calls = {"cuMemGetAllocationPropertiesFromHandle"},
					  .attack = attack});
}
