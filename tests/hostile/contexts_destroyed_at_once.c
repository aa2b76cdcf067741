/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread destroys a context that another one is just destroying, and makes one, which has its handle before the other thread is in the driver.
 * The next contexts are measured. Twelve processes follow with a context each.
 *
 * The context that was destroyed by the handle of another stayed in the books, and counted where what all of them take was divided by
 * their number: a context was learned to take 345 MiB and not 518, and 4,144 MiB were held in a slice of 3,072. Now who
 * destroys by a handle that is in no books waits for those that make contexts or end them.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define FOLLOWERS 12

static CUcontext doomed;

static void *destroy(void *unused)
{
	cuCtxDestroy_v2(doomed);
	return unused;
}

static void teach(int index)
{
	CUcontext next, primary = hostile_begin();
	CUdeviceptr block;
	pthread_t thread;

	/* The library asks NVML from the second second on. */
	usleep(1500000);
	MUST(cuMemAlloc_v2(&block, 2 * MIB));
	MUST(cuMemFree_v2(block));
	MUST(cuCtxCreate_v2(&doomed, 0, 0));
	MUST(cuCtxSetCurrent(primary));
	MUST(pthread_create(&thread, NULL, destroy, NULL));
	usleep(5000);
	/* Its thread's call has begun first, and comes to the driver later. */
	cuCtxDestroy(doomed);
	cuCtxCreate_v2(&next, 0, 0);
	MUST(pthread_join(thread, NULL));
	cuCtxCreate_v2(&next, 0, 0);
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
	return hostile_main(argv, &(struct hostile){.quota_bytes = 3 * GIB,
					  .slow_calls = {"cuCtxDestroy_v2"},
					  .is_slow_only = true,
					  .attack = attack});
}
