/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes create memory without a context, export it, fork a child that does nothing, and end. The child has the driver's files open,
 * so the memory stays.
 *
 * All that such a process held had moved to a shared allocation, so nobody asked whether it had left children: four of them had
 * 6,144 MiB in a slice of 2 GiB. Now it stays charged until the children have ended, too. Each other one exports by a fabric handle,
 * which keeps nothing, and is given out by a slice with "exports none", too.
 */
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

static int wake[2];

static void take(CUmemAllocationHandleType type)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;
	union {
		int fd;
		CUmemFabricHandle fabric;
	} shareable;

	MUST(cuInit(0));
	if (cuMemCreate(&handle, 1536 * MIB, &properties, 0) == CUDA_SUCCESS &&
		cuMemExportToShareableHandle(&shareable, handle, type, 0) == CUDA_SUCCESS &&
		type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		close(shareable.fd);
}

static void take_and_leave(CUmemAllocationHandleType type)
{
	char end;

	take(type);
	if (fork() != 0)
		_exit(0);
	MUST(close(wake[1]));
	MUST(read(wake[0], &end, 1) != 0);
	_exit(0);
}

static void attack(void)
{
	MUST(pipe(wake));
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid == 0)
			take_and_leave(i % 2 ? CU_MEM_HANDLE_TYPE_FABRIC
					     : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		MUST(waitpid(pid, NULL, 0) != pid);
		hostile_look();
	}
	MUST(close(wake[1]));
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
