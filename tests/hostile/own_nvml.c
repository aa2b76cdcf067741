/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program has an NVML of its own, which is loaded before the machine's and says of each process that it holds little. The
 * books followed it: 20.5 GiB of data of modules were held at a quota of 2.
 */
#include <dlfcn.h>

#include "tests/hostile/hostile.h"

static void attack(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x20000000];"};
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;

	MUST(!dlopen(OWN_NVML, RTLD_NOW | RTLD_GLOBAL));
	hostile_begin();
	for (int i = 0; i < 8; i++) {
		cuModuleLoadData(&module, hostile_ptx(&code, text));
		cuModuleLoadData(&module, hostile_fat_binary(&code));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_simulated_only = true,
					  .is_brief = true,
					  .attack = attack});
}
