/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes import memory that others created, fork a child that does nothing, and end; then the makers release it. A child has the
 * driver's files open, so it keeps what its parent imported.
 *
 * Such a process had nothing of its own in the books, so nobody asked whether it had left children, and with its maker the memory was
 * given back: four of them had 6,144 MiB in a slice of 2 GiB. Now it stays charged until the children have ended, too.
 */
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define TYPE CU_MEM_HANDLE_TYPE_FABRIC

static int wake[2];

static void import_and_leave(int from)
{
	CUmemGenericAllocationHandle handle;
	CUmemFabricHandle fabric;
	char end;

	/* nothing comes where the maker had no room */
	if (read(from, &fabric, sizeof(fabric)) != (ssize_t)sizeof(fabric))
		_exit(0);
	MUST(cuInit(0));
	cuMemImportFromShareableHandle(&handle, &fabric, TYPE);
	if (fork() != 0)
		_exit(0);
	MUST(close(wake[1]));
	MUST(read(wake[0], &end, 1) != 0);
	_exit(0);
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
static void make_and_release(void)
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
	_exit(0);
}

static void attack(void)
{
	MUST(pipe(wake));
	for (int i = 0; i < 4; i++) {
		pid_t maker = fork();

		if (maker == 0)
			make_and_release();
		MUST(waitpid(maker, NULL, 0) != maker);
		hostile_look();
	}
	MUST(close(wake[1]));
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
