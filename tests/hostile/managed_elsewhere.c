/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory is allocated with one device current, and moved to another, beside what that has already. */
#include "tests/hostile/hostile.h"

#define BLOCKS	    5
#define BLOCK_BYTES (256 * MIB)

static void attack(void)
{
	CUdeviceptr managed, block;
	CUcontext other;

	hostile_begin();
	MUST(cuDevicePrimaryCtxRetain(&other, 1));
	for (int i = 0; i < BLOCKS; i++) {
		if (cuMemAllocManaged(&managed, BLOCK_BYTES, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
			MUST(cuMemPrefetchAsync(managed, BLOCK_BYTES, 1, NULL));
		MUST(cuCtxPushCurrent_v2(other));
		cuMemAlloc_v2(&block, BLOCK_BYTES);
		MUST(cuCtxPopCurrent_v2(&other));
	}
	MUST(cuStreamSynchronize(NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .device_count = 2, .attack = attack});
}
