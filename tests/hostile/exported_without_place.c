/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process exports empty pools until the region has no place left for shared allocations. Others export created memory then, and
 * end; a descriptor keeps it.
 */
#include "tests/hostile/descriptors.h"

#define PLACES 1100

static void fill_places(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	int fd;

	for (int i = 0; i < PLACES; i++) {
		MUST(cuMemPoolCreate(&pool, &properties));
		if (cuMemPoolExportToShareableHandle(
			    &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
			close(fd);
	}
}

static void keep_open(int fd)
{
	(void)fd;
}

static void attack(void)
{
	descriptors_attack(&(struct descriptors){
		.prepare = fill_places, .import = keep_open, .finish = descriptors_take_the_rest});
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 3 * GIB, .is_slow_only = true, .attack = attack});
}
