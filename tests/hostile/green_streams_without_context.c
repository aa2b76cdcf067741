/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the quota is full, streams are made in a green context, while no context is current: the driver needs none.
 *
 * What such a stream takes was reserved for the current context's device, so without one it was not reserved and never
 * refused: 3.1 GiB were held in a slice of 2 GiB. Now it is reserved in the green context.
 */
#include "tests/hostile/hostile.h"

static void fill(uint64_t bytes)
{
	CUdeviceptr block;

	/* No more than the quota, without the library either. */
	for (uint64_t sum = 0; sum < 2 * GIB && cuMemAlloc_v2(&block, bytes) == CUDA_SUCCESS;)
		sum += bytes;
}

static void attack(void)
{
	CUdevResourceDesc description;
	CUdevResource all;
	CUgreenCtx green;
	CUstream stream;

	hostile_begin();
	MUST(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	MUST(cuDevResourceGenerateDesc(&description, &all, 1));
	MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	fill(64 * MIB);
	fill(2 * MIB);
	MUST(cuCtxSetCurrent(NULL));
	for (int i = 0; i < 2000; i++)
		if (cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0) !=
			CUDA_SUCCESS)
			break;
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
