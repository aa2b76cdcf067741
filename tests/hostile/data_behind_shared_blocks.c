/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks are shared, for each of which a chunk more is charged than NVML shows: cover for as much in a fat binary. Then
 * they are freed, and what comes back is taken at once.
 */
#include "tests/hostile/hostile.h"

#define BLOCKS 300

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x25800000];"};
	CUdeviceptr block[BLOCKS], rest;
	CUipcMemHandle handle;
	CUmodule module;

	hostile_begin();
	for (int i = 0; i < BLOCKS; i++) {
		MUST(cuMemAlloc_v2(&block[i], 512));
		MUST(cuIpcGetMemHandle(&handle, block[i]));
	}
	cuModuleLoadData(&module, hostile_fat_binary(&code));
	for (int i = 0; i < BLOCKS; i++)
		MUST(cuMemFree_v2(block[i]));
	cuMemAlloc_v2(&rest, 1400 * MIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
