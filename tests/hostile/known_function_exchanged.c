/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that was launched before is launched while another thread unloads its code, or ends its context, and loads others until one with frames of
 * 60,000 bytes, or in a library with 8 GiB of variables, has its handle.
 *
 * Such a launch went straight to the driver: 15,726 MiB were held in a slice of 2 GiB. Now code is not unloaded while a launch of it is under way.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 30

enum way { FRAMES, LIBRARY, CONTEXT, WAYS };

static CUcontext context;
static CUmodule module;
static CUlibrary library;
static CUfunction function;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];
static enum way way_now;

static void load(const char *text)
{
	CUkernel kernel;

	if (way_now == LIBRARY) {
		MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, library, "k"));
		function = (CUfunction)kernel;
	} else {
		MUST(cuModuleLoadData(&module, text));
		MUST(cuModuleGetFunction(&function, module, "k"));
	}
}

static CUresult unload(void)
{
	return way_now == LIBRARY ? cuLibraryUnload(library) : cuModuleUnload(module);
}

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	hostile_launch(function, NULL);
	return unused;
}

static bool end_code(void)
{
	CUcontext again;

	if (way_now != CONTEXT)
		return unload() == CUDA_SUCCESS;
	return cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS &&
	       cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS &&
	       cuCtxSetCurrent(again) == CUDA_SUCCESS;
}

static void exchange(void)
{
	const CUfunction before = function;

	if (!end_code())
		return;
	for (int i = 0; i < ROUNDS; i++) {
		load(large_text);
		if (function == before || unload() != CUDA_SUCCESS)
			return;
	}
}

static void attack_so(int unused)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code frames = {.frame_bytes = 60000};
	struct hostile_code data = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};
	pthread_t thread;

	context = hostile_begin();
	hostile_ptx(&small, small_text);
	hostile_ptx(way_now == LIBRARY ? &data : &frames, large_text);
	/* What has ended is some, as in a program that has run for a while. */
	for (int i = 0; i < ROUNDS; i++) {
		load(small_text);
		MUST(unload());
	}
	load(small_text);
	MUST(hostile_launch(function, NULL));
	MUST(cuStreamSynchronize(NULL));
	thread = hostile_begin_slowly(launch);
	exchange();
	MUST(pthread_join(thread, NULL));
	usleep(100000);
	hostile_look();
}

/* Each in a process of its own, one after the other: frames stay with the context. */
static void attack(void)
{
	for (way_now = 0; way_now < WAYS; way_now++)
		hostile_processes(1, attack_so);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_slow_only = true,
					  .is_simulated_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuLaunchKernel"},
					  .attack = attack});
}
