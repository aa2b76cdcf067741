/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another interface, whose maker has ended, is imported: NVML shows it for nobody, and it was cover for as much in
 * a fat binary.
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
		.bytes = BYTES, .rounds = 3, .import = import, .finish = load});
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 3 * GIB + 256 * MIB,
			      .board = "", /* where created memory stands for another interface's */
			      .is_brief = true,
			      .attack = attack});
}
