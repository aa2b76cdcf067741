/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of the slice has no memory when the first managed memory is asked for, and is given a quota while the program runs (vgpu set).
 * Managed memory is brought there, beside what is allocated there.
 */
#include <string.h>

#include "tests/hostile/hostile.h"

#define BYTES (1280 * MIB)

/* The first device alone has memory. */
static void grant_first(void)
{
	char line[128] = "device GPU-";
	CUuuid uuid;

	MUST(cuInit(0));
	MUST(cuDeviceGetUuid(&uuid, 0));
	for (int i = 0; i < 16; i++)
		sprintf(line + strlen(line), i >= 4 && i <= 10 && i % 2 == 0 ? "-%02x" : "%02x",
			(unsigned char)uuid.bytes[i]);
	strcat(line, " memory 2g\ndevice * memory 0\n");
	hostile_grant(line);
}

static void attack(void)
{
	CUdeviceptr managed = 0, block;
	CUcontext context;

	grant_first();
	hostile_begin();
	MUST(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	hostile_grant("device * memory 2g\n");
	if (cuDevicePrimaryCtxRetain(&context, 1) != CUDA_SUCCESS)
		return;
	MUST(cuCtxSetCurrent(context));
	cuMemAlloc_v2(&block, BYTES);
	MUST(cuMemsetD8_v2(managed, 1, BYTES));
	MUST(cuCtxSynchronize());
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .device_count = 2, .attack = attack});
}
