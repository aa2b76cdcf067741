/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process exports empty pools until the region has no place left for shared allocations, so that it cannot say whose a handle is. Then
 * it opens memory by other processes' handles, into which it writes a small size.
 *
 * Such memory's handle is not given out any more.
 */
#include "tests/hostile/forged.h"
#include "tests/hostile/hostile.h"

#define PLACES 1100

static void fill_places(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	int fd;

	for (int i = 0; i < PLACES; i++) {
		/* A card has room for some hundreds. */
		if (cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS)
			break;
		if (cuMemPoolExportToShareableHandle(
			    &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
			close(fd);
	}
}

static void attack(void)
{
	forged_attack(fill_places);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB, .attack = attack});
}
