/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another interface, whose maker has ended, is imported in a context that is destroyed then. The import does not
 * end with the context.
 *
 * The books gave it back, and NVML shows it for nobody: 9,228 MiB were held in a slice of 4,096. Now it is charged until
 * cuDestroyExternalMemory.
 */
#include "tests/hostile/descriptors.h"

static void import(int fd)
{
	CUcontext context;

	if (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
		return;
	descriptors_import_external(fd);
	MUST(cuCtxDestroy_v2(context));
}

static void attack(void)
{
	descriptors_attack(&(struct descriptors){
		.bytes = DESCRIPTORS_EXTERNAL_BYTES, .rounds = 12, .import = import});
}

int main(int argc, char **argv)
{
	return hostile_main(
		argv, &(struct hostile){.quota_bytes = 3 * GIB,
			      .board = "", /* where created memory stands for another interface's */
			      .attack = attack});
}
