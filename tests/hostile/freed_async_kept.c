/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of which a descriptor was made is freed in stream order, and a fat binary with as much data is loaded.
 *
 * It stayed charged as memory that NVML shows for the process, so what NVML showed of the data passed for it: 3,118 MiB were held in a
 * slice of 2,048.
 */
#include "tests/hostile/hostile.h"

#define BYTES (1300 * MIB)

static void attack(void)
{
	static struct hostile_code code = {.variables = ".global .align 8 .b8 big[1363148800];"};
	CUdeviceptr block;
	CUmodule module;
	int fd;

	hostile_begin();
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(cuMemGetHandleForAddressRange(
		&fd, block, BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	MUST(cuMemFreeAsync(block, NULL));
	MUST(cuCtxSynchronize());
	(void)cuModuleLoadData(&module, hostile_fat_binary(&code));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
