/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another interface, whose maker has ended, is imported: NVML shows it for nobody, and it was cover for as much in
 * a fat binary.
 */
#include "tests/hostile/descriptors.h"

static void attack(void)
{
	descriptors_attack(&(struct descriptors){.bytes = DESCRIPTORS_EXTERNAL_BYTES,
		.rounds = 3,
		.import = descriptors_import_external,
		.finish = descriptors_load_data});
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 3 * GIB + 256 * MIB,
			      .board = "", /* where created memory stands for another interface's */
			      .is_brief = true,
			      .attack = attack});
}
