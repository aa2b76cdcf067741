/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes give out all ways to memory by a descriptor, leave a child that keeps it, and end: of a range nothing tells
 * that it is still kept, and of the other the mark is taken off. In a slice whose share says so, none is given out.
 */
#include "tests/hostile/descriptors.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define MAKERS 3

static void make(int index)
{
	CUdeviceptr block;
	int fd;

	if (!hostile_try_begin())
		return;
	if (cuMemAlloc_v2(&block, GIB) == CUDA_SUCCESS)
		cuMemGetHandleForAddressRange(
			&fd, block, GIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (descriptors_create(GIB, &fd))
		descriptors_take_off_mark(fd);
	if (fork() == 0)
		for (;;)
			pause();
}

static void attack(void)
{
	for (int i = 0; i < MAKERS; i++)
		hostile_processes(1, make);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .terms = "exports none",
					  .is_brief = true,
					  .attack = attack});
}
