/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal's handler makes another context current when the driver has given memory, and before the library asks in which context that
 * is. Then the other context is destroyed.
 */
#include <signal.h>
#include <sys/time.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	    6
#define BLOCK_BYTES GIB

static CUcontext other;

static void make_other_current(int number)
{
	(void)number;
	cuCtxSetCurrent(other);
}

static void attack(void)
{
	const struct itimerval timer = {.it_value = {.tv_usec = 20000}};
	CUcontext primary = hostile_begin();
	CUdeviceptr block;
	CUresult r;

	MUST(signal(SIGALRM, make_other_current) == SIG_ERR);
	for (int i = 0; i < ROUNDS && cuCtxCreate_v2(&other, 0, 0) == CUDA_SUCCESS; i++) {
		MUST(cuCtxSetCurrent(primary));
		MUST(setitimer(ITIMER_REAL, &timer, NULL));
		r = cuMemAllocManaged(&block, BLOCK_BYTES, CU_MEM_ATTACH_GLOBAL);
		usleep(30000);
		MUST(cuCtxSetCurrent(primary));
		MUST(cuCtxDestroy_v2(other));
		if (r != CUDA_SUCCESS)
			continue;
		MUST(cuMemsetD8_v2(block, 1, BLOCK_BYTES));
		MUST(cuCtxSynchronize());
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .slow_calls = {"cuCtxGetCurrent"},
					  .is_slow_only = true,
					  .attack = attack});
}
