/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal's handler makes a context of device 1 current while memory is asked for in one of device 0, for which it was charged: a block, or an array.
 */
#include <signal.h>
#include <sys/time.h>

#include "tests/hostile/hostile.h"

#define PIECES 4

static CUcontext contexts[2];

static void make_other_current(int number)
{
	(void)number;
	cuCtxSetCurrent(contexts[1]);
}

static void attack(void)
{
	const struct itimerval timer = {.it_value = {.tv_usec = 20000}};
	const CUDA_ARRAY_DESCRIPTOR array_of_1g = {
		.Width = 16384, .Height = 16384, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUdeviceptr block;
	CUarray array;

	contexts[0] = hostile_begin();
	MUST(cuDevicePrimaryCtxRetain(&contexts[1], 1));
	MUST(cuCtxSetCurrent(contexts[1]));
	MUST(cuMemAlloc_v2(&block, 3 * GIB));
	MUST(signal(SIGALRM, make_other_current) == SIG_ERR);
	for (int i = 0; i < PIECES; i++) {
		MUST(cuCtxSetCurrent(contexts[0]));
		MUST(setitimer(ITIMER_REAL, &timer, NULL));
		if (i % 2)
			cuMemAlloc_v2(&block, GIB);
		else
			cuArrayCreate_v2(&array, &array_of_1g);
		usleep(30000);
	}
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .device_count = 2,
					  .slow_calls = {"cuMemAlloc_v2", "cuArrayCreate_v2"},
					  .is_slow_only = true,
					  .attack = attack});
}
