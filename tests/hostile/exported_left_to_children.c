/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes create memory without a context, export it, fork a child that does nothing, and end. The child has the driver's files open,
 * so the memory stays.
 *
 * All that such a process held had moved to a shared allocation, so nobody asked whether it had left children: four of them had
 * 6,144 MiB in a slice of 2 GiB. Now it stays charged until the children have ended, too. Each other one exports by a fabric handle,
 * which keeps nothing, and is given out by a slice with "exports none", too.
 */
#include "tests/hostile/descriptors.h"

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

static void take_and_leave(int index)
{
	take(index % 2 ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	descriptors_leave_child();
}

static void attack(void)
{
	descriptors_in_turn(4, take_and_leave);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
