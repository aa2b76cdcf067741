/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes of a slice whose region lies on an overlay, as in each plain container, take memory one after the
 * other, with all descriptors closed as daemons do it. There the kernel drops a lock with the descriptor, and a
 * process that is known by its lock alone looks dead to the next one, which gave back what it held.
 */
#include <string.h>

#include "tests/hostile/hostile.h"

#define PROCESSES   3
#define BLOCK_BYTES (64 * MIB)
#define BLOCKS	    24
#define DEVICES	    "/dev/nvidia"

/* All but the real driver's own, without which it takes no memory. */
static void close_all(void)
{
	char name[32], target[16];
	ssize_t length;

	for (int fd = 3; fd < 100; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		length = readlink(name, target, sizeof(target));
		if (length < (ssize_t)strlen(DEVICES) || memcmp(target, DEVICES, strlen(DEVICES)))
			close(fd);
	}
}

static void run(int index)
{
	CUdeviceptr block;
	CUcontext context;
	CUresult r;

	usleep((unsigned)index * 300000);
	MUST(cuInit(0));
	r = cuDevicePrimaryCtxRetain(&context, 0);
	close_all();
	/* A context may not fit any more. */
	if (r == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS)
		for (int i = 0; i < BLOCKS; i++)
			cuMemAlloc_v2(&block, BLOCK_BYTES);
	hostile_meet(PROCESSES);
	hostile_look();
}

static void attack(void)
{
	hostile_processes(PROCESSES, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv,
		&(struct hostile){.quota_bytes = 2 * GIB, .is_on_overlay = true, .attack = attack});
}
