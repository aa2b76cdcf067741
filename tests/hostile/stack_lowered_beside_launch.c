/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel with deep frames, for which the context gets 1.8 GiB, is launched again, or another one for the first time. Before the launch comes to the driver another thread lowers the stack's
 * limit, so the driver gives these back, and takes other memory in their place.
 *
 * The kernel was known, and its launch went straight to the driver, which made the room again: 8,078 MiB were held in a slice of 5 GiB. Now the
 * limit waits for launches that are under way.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

enum way { KNOWN, FIRST, WAYS };

static CUcontext context;
static CUfunction function;
static enum way way_now;

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	hostile_launch(function, NULL);
	return unused;
}

static void load(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUmodule module;

	MUST(cuModuleLoadData(
		&module, hostile_ptx(&(struct hostile_code){.frame_bytes = 8192}, text)));
	MUST(cuModuleGetFunction(&function, module, "k"));
}

static void attack_so(int unused)
{
	CUdeviceptr block;
	pthread_t thread;
	int blocks = 0;

	context = hostile_begin();
	load();
	MUST(hostile_launch(function, NULL));
	MUST(cuStreamSynchronize(NULL));
	if (way_now == FIRST)
		load();
	thread = hostile_begin_slowly(launch);
	cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024);
	while (blocks < 32 && cuMemAlloc_v2(&block, 128 * MIB) == CUDA_SUCCESS)
		blocks++;
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .is_slow_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuLaunchKernel"},
					  .attack = attack});
}
