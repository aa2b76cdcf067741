/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code whose kernels launch kernels, in the names of CUDA 12 (__cudaCDP2LaunchDeviceV2), is loaded where 32 MiB are left.
 *
 * Only the names of CUDA 11 were known, so 2 MiB were reserved for code that brings 138 MiB of the device's own runtime, which
 * stays when the code is unloaded again: 2,154 MiB were held in a slice of 2 GiB.
 */
#include "tests/hostile/hostile.h"

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUdeviceptr block;
	CUmodule module;

	hostile_begin();
	for (uint64_t bytes = 2 * GIB; bytes >= 32 * MIB; bytes -= 2 * MIB)
		if (cuMemAlloc_v2(&block, bytes) == CUDA_SUCCESS) {
			MUST(cuMemFree_v2(block));
			MUST(cuMemAlloc_v2(&block, bytes - 32 * MIB));
			break;
		}
	cuModuleLoadData(&module, hostile_ptx(&(struct hostile_code){.has_launch = true}, text));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .board = "", /* whose driver needs no library with it */
					  .attack = attack});
}
