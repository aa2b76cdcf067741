/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device is given a quota while managed memory is there (vgpu set), another process of the slice fills it, and the managed memory is sent
 * there, by a process that has no context on it.
 */
#include <string.h>
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

#define BYTES (1280 * MIB)

/* The first device alone has memory. */
static void grant_first(void)
{
	char line[128] = "device GPU-";
	CUuuid uuid;

	MUST(cuDeviceGetUuid(&uuid, 0));
	for (int i = 0; i < 16; i++)
		sprintf(line + strlen(line), i >= 4 && i <= 10 && i % 2 == 0 ? "-%02x" : "%02x",
			(unsigned char)uuid.bytes[i]);
	strcat(line, " memory 2g\ndevice * memory 0\n");
	hostile_grant(line);
}

/* Begins CUDA when it is told to. */
static void fill(int told, int done)
{
	CUdeviceptr block;
	CUcontext context;
	char c;

	MUST(read(told, &c, 1) != 1);
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 1));
	MUST(cuCtxSetCurrent(context));
	MUST(cuMemAlloc_v2(&block, BYTES));
	MUST(write(done, "d", 1) != 1);
	(void)!read(told, &c, 1);
	_exit(0);
}

static void attack(void)
{
	CUdeviceptr managed, block;
	int tell[2], done[2];
	char c;

	MUST(pipe(tell));
	MUST(pipe(done));
	if (fork() == 0)
		fill(tell[0], done[1]);
	MUST(cuInit(0));
	grant_first();
	hostile_begin();
	MUST(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	hostile_grant("device * memory 2g\n");
	MUST(write(tell[1], "g", 1) != 1);
	MUST(read(done[0], &c, 1) != 1);
	/* Has the new quota seen. */
	MUST(cuMemAlloc_v2(&block, MIB));
	cuMemPrefetchAsync(managed, BYTES, 1, NULL);
	MUST(cuStreamSynchronize(NULL));
	hostile_look();
	MUST(write(tell[1], "e", 1) != 1);
	wait(NULL);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .device_count = 2, .attack = attack});
}
