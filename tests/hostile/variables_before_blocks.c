/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules lie alone in their chunks, and small blocks come to lie behind them, so that a comparison finds one chunk for both.
 * Then the blocks are freed, all at once, and as much is taken in their place.
 */
#include "tests/hostile/hostile.h"

#define COUNT 450

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 8 .b8 data[1572864];\n"};
	static CUdeviceptr small[COUNT];
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;
	CUdeviceptr big;
	int n = 0;

	hostile_begin();
	usleep(1500000);
	for (int i = 0; i < COUNT; i++)
		cuModuleLoadData(&module, hostile_ptx(&code, text));
	for (; n < COUNT && cuMemAlloc_v2(&small[n], 300 << 10) == CUDA_SUCCESS; n++)
		;
	/* It is compared before this is refused. */
	cuMemAlloc_v2(&big, 3 * GIB);
	for (int i = 0; i < n; i++)
		MUST(cuMemFree_v2(small[i]));
	for (int i = 0; i < 150 && cuMemAlloc_v2(&big, 16 * MIB) == CUDA_SUCCESS; i++)
		;
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
