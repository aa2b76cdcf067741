/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight processes of a slice take memory at the same time, each until it is refused, while the memory of two
 * that were killed comes back. The quota is the slice's, whatever the number of its processes: this has always
 * held.
 */
#include <signal.h>

#include "tests/hostile/hostile.h"

#define PROCESSES   8
#define KILLED	    2
#define BLOCK_BYTES (16 * MIB)
#define BLOCKS	    64

static void take(void)
{
	CUdeviceptr block;
	CUcontext context;

	MUST(cuInit(0));
	/* A context may not fit any more. */
	if (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
		cuCtxSetCurrent(context) == CUDA_SUCCESS)
		for (int i = 0; i < BLOCKS; i++)
			cuMemAlloc_v2(&block, BLOCK_BYTES);
}

static void run(int index)
{
	pid_t killed = index < KILLED ? fork() : -1;

	if (killed <= 0)
		take();
	if (killed == 0)
		pause();
	usleep(50000);
	if (killed > 0)
		kill(killed, SIGKILL);
	hostile_meet(PROCESSES);
	hostile_look();
}

static void attack(void)
{
	hostile_processes(PROCESSES, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB, .attack = attack});
}
