/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of modules lie in chunks with small blocks, which are freed then, all at once; and as much is taken in their place. */
#include "tests/hostile/hostile.h"

#define COUNT 500

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 8 .b8 data[1048576];\n"};
	static CUdeviceptr small[COUNT];
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;
	CUdeviceptr big;
	int n;

	hostile_begin();
	usleep(1500000);
	for (n = 0; n < COUNT && cuMemAlloc_v2(&small[n], 512) == CUDA_SUCCESS; n++)
		cuModuleLoadData(&module, hostile_ptx(&code, text));
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
