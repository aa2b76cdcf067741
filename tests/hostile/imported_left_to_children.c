/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes import memory that others created, fork a child that does nothing, and end; then the makers release it. A child has the
 * driver's files open, so it keeps what its parent imported.
 *
 * Such a process had nothing of its own in the books, so nobody asked whether it had left children, and with its maker the memory was
 * given back: four of them had 6,144 MiB in a slice of 2 GiB. Now it stays charged until the children have ended, too.
 */
#include <sys/wait.h>

#include "tests/hostile/descriptors.h"

#define TYPE CU_MEM_HANDLE_TYPE_FABRIC

static void import_and_leave(int from)
{
	CUmemGenericAllocationHandle handle;
	CUmemFabricHandle fabric;

	/* nothing comes where the maker had no room */
	if (read(from, &fabric, sizeof(fabric)) != (ssize_t)sizeof(fabric))
		_exit(0);
	MUST(cuInit(0));
	cuMemImportFromShareableHandle(&handle, &fabric, TYPE);
	descriptors_leave_child();
}

static bool create(CUmemGenericAllocationHandle *ret_handle, CUmemFabricHandle *ret_fabric)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = TYPE,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	MUST(cuInit(0));
	return cuMemCreate(ret_handle, 1536 * MIB, &properties, 0) == CUDA_SUCCESS &&
	       cuMemExportToShareableHandle(ret_fabric, *ret_handle, TYPE, 0) == CUDA_SUCCESS;
}

/* The importer is forked before CUDA is touched. */
static void make_and_release(int index)
{
	CUmemGenericAllocationHandle handle;
	CUmemFabricHandle fabric;
	pid_t importer;
	int to[2];

	MUST(pipe(to));
	importer = fork();
	if (importer == 0) {
		MUST(close(to[1]));
		import_and_leave(to[0]);
	}
	if (create(&handle, &fabric)) {
		MUST(write(to[1], &fabric, sizeof(fabric)) != (ssize_t)sizeof(fabric));
		MUST(waitpid(importer, NULL, 0) != importer);
		MUST(cuMemRelease(handle));
	}
}

static void attack(void)
{
	descriptors_in_turn(4, make_and_release);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
