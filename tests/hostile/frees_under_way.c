/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of cuMemAlloc is freed in the order of a stream that is busy: the driver keeps it until the stream is there.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS	    12
#define BLOCK_BYTES (256 * MIB)

static void attack(void)
{
	CUdeviceptr block;
	CUstream busy;

	hostile_begin();
	MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	hostile_keep_busy(busy);
	for (int i = 0; i < BLOCKS; i++)
		if (cuMemAlloc_v2(&block, BLOCK_BYTES) == CUDA_SUCCESS)
			MUST(cuMemFreeAsync(block, busy));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
