/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context with two users is detached by one, and goes on, with managed memory in it. A signal's handler makes another context current
 * before the library has asked which one is, as if the first had ended: in the first question for that after the detaching, or in the second.
 */
#include <signal.h>
#include <sys/time.h>

#include "tests/hostile/hostile.h"

#define ROUNDS	    6
#define BLOCK_BYTES (1536 * MIB)
#define STEP_BYTES \
	(2 * MIB) /* the simulated node moves the whole block; bytes of the host's are as few as can be */

static CUcontext primary;

static void make_other_current(int number)
{
	(void)number;
	cuCtxSetCurrent(primary);
}

static bool take(CUcontext *ret_context)
{
	CUdeviceptr block;

	if (cuCtxCreate_v2(ret_context, 0, 0) != CUDA_SUCCESS ||
		cuMemAllocManaged(&block, BLOCK_BYTES, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
		return false;
	cuMemsetD2D8_v2(block, STEP_BYTES, 1, 1, BLOCK_BYTES / STEP_BYTES);
	MUST(cuCtxSynchronize());
	return true;
}

static void attack(void)
{
	struct itimerval timer = {.it_value = {.tv_usec = 20000}};
	CUcontext context, same;

	primary = hostile_begin();
	MUST(signal(SIGALRM, make_other_current) == SIG_ERR);
	for (int i = 0; i < ROUNDS && take(&context); i++) {
		MUST(cuCtxAttach(&same, 0));
		timer.it_value.tv_usec = i % 2 ? 70000 : 20000;
		MUST(setitimer(ITIMER_REAL, &timer, NULL));
		cuCtxDetach(context);
		usleep(100000);
		MUST(cuCtxSetCurrent(context));
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"cuCtxGetCurrent"},
					  .is_slow_only = true,
					  .attack = attack});
}
