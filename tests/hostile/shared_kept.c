/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that other processes may open, and that a descriptor of its range keeps, is freed. NVML shows it for nobody then, and a fat binary
 * of just its size is loaded.
 */
#include "tests/hostile/hostile.h"

#define BYTES (1300 * MIB)

static void attack(void)
{
	static struct hostile_code code = {.variables = ".global .align 8 .b8 big[1363148800];"};
	CUipcMemHandle handle;
	CUdeviceptr block;
	CUmodule module;
	int fd;

	hostile_begin();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuIpcGetMemHandle(&handle, block));
	MUST(cuMemGetHandleForAddressRange(
		&fd, block, BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	MUST(cuMemFree_v2(block));
	(void)cuModuleLoadData(&module, hostile_fat_binary(&code));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
