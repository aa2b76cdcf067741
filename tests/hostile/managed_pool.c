/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of managed memory, which is on no device as far as the driver tells. */
#include "tests/hostile/hostile.h"

#define BLOCKS	    12
#define BLOCK_BYTES (256 * MIB)

static void attack(void)
{
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED};
	CUmemoryPool pool;
	CUdeviceptr block;

	hostile_begin();
	if (cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS)
		return;
	for (int i = 0; i < BLOCKS; i++)
		if (cuMemAllocFromPoolAsync(&block, BLOCK_BYTES, pool, NULL) == CUDA_SUCCESS)
			MUST(cuMemsetD8Async(block, 1, BLOCK_BYTES, NULL));
	MUST(cuStreamSynchronize(NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
