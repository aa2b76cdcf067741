/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a managed pool, and created managed memory, of which no driver tells where it lies, are taken while the slice has no quota of
 * memory. Then it is given one (vgpu set), and goes on with the pool, beside what it has.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    6
#define BLOCK_BYTES (64 * MIB)

static CUmemoryPool pool;

static void fill(void)
{
	CUdeviceptr block;

	for (int i = 0; pool && i < BLOCKS; i++)
		if (cuMemAllocFromPoolAsync(&block, BLOCK_BYTES, pool, NULL) == CUDA_SUCCESS)
			MUST(cuMemsetD8Async(block, 1, BLOCK_BYTES, NULL));
	MUST(cuStreamSynchronize(NULL));
}

static void attack(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};
	CUdeviceptr block;

	hostile_grant("device * memory unlimited cap 100\n");
	hostile_begin();
	if (cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS)
		pool = NULL;
	fill();
	hostile_grant("device * memory 1g\n");
	fill();
	cuMemAlloc_v2(&block, 512 * MIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = GIB, .attack = attack});
}
