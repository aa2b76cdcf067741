/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another interface is imported when as much is charged as unattributed, for a fat binary. NVML's figure has that, which
 * was taken for what is imported, and then was cover for a second fat binary.
 */
#include "tests/hostile/descriptors.h"

static void attack(void)
{
	descriptors_attack(&(struct descriptors){.bytes = DESCRIPTORS_EXTERNAL_BYTES,
		.rounds = 3,
		.prepare = descriptors_load_data,
		.import = descriptors_import_external,
		.finish = descriptors_load_data});
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 4 * GIB + 512 * MIB,
			      .board = "", /* where created memory stands for another interface's */
			      .is_brief = true,
			      .attack = attack});
}
