/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another interface is imported when as much is charged as unattributed, for a fat binary. NVML's figure has that, which
 * was taken for what is imported, and then was cover for a second fat binary.
 */
#include "tests/hostile/descriptors.h"

#define BYTES (512 * MIB)

static void import(int fd)
{
	descriptors_import_external(fd, BYTES);
}

static void load(void)
{
	struct hostile_code code = {.variables = ".visible .global .align 4 .b8 data[0x60000000];"};
	CUmodule module;

	cuModuleLoadData(&module, hostile_fat_binary(&code));
}

static void attack(void)
{
	descriptors_attack(&(struct descriptors){
		.bytes = BYTES, .rounds = 3, .prepare = load, .import = import, .finish = load});
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 4 * GIB + 512 * MIB,
			      .board = "", /* where created memory stands for another interface's */
			      .is_brief = true,
			      .attack = attack});
}
