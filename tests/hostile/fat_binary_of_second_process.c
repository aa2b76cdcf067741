/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's second process knows what a context takes, and asks NVML nothing at first. It loads fat binaries then. */
#include <unistd.h>

#include "tests/hostile/hostile.h"

static void run(int i)
{
	struct hostile_code code = {
		.variables = ".visible .global .align 4 .b8 data[0x100000000];"};
	CUmodule module;

	if (i == 1)
		usleep(1500000);
	hostile_begin();
	for (int k = 0; i == 1 && k < 3; k++)
		cuModuleLoadData(&module, hostile_fat_binary(&code));
	hostile_look();
}

static void attack(void)
{
	hostile_processes(2, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_brief = true, .attack = attack});
}
