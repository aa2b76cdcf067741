/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context takes is measured with the slice's first one. Here a second thread is about to make one when the
 * first is done, so the first is not measured; and there are 440 MiB of managed memory, which NVML does not show, by
 * the time the second is. Twelve processes follow with a context each.
 *
 * Managed memory was taken off NVML's figure, so a context was learned to take 68 MiB, for as long as the slice
 * lived, and 6.2 GiB were held in a slice of 2 GiB. Now only the first thing that a process holds is a measure of a
 * context, a later measure corrects an earlier one, and a context that took more than was left is destroyed again.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define FOLLOWERS 12

static void *make_later(void *argument)
{
	CUcontext context;

	usleep(25000);
	cuCtxCreate_v2(&context, 0, 0);
	return NULL;
}

static void teach(int index)
{
	CUcontext context;
	CUdeviceptr block;
	pthread_t thread;

	MUST(cuInit(0));
	MUST(pthread_create(&thread, NULL, make_later, NULL));
	if (cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS)
		cuMemAllocManaged(&block, 440 * MIB, CU_MEM_ATTACH_GLOBAL);
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

static void follow(int index)
{
	CUcontext context;

	MUST(cuInit(0));
	cuDevicePrimaryCtxRetain(&context, 0);
	hostile_meet(FOLLOWERS);
	hostile_look();
}

static void attack(void)
{
	hostile_processes(1, teach);
	hostile_processes(FOLLOWERS, follow);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuCtxCreate_v2"},
					  .attack = attack});
}
