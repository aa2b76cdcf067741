/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function is launched for the first time while another thread unloads its code, and loads libraries with 8 GiB of variables until a kernel of one
 * has its handle.
 *
 * The driver was asked of which module it is, and loaded the library for that: 8,710 MiB were held in a slice of 2 GiB. Now a library that came so is unloaded
 * again.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define ROUNDS 60

static CUcontext context;
static CUmodule module;
static CUfunction function;
static char small_text[HOSTILE_CODE_BYTES], large_text[HOSTILE_CODE_BYTES];

static void load(void)
{
	MUST(cuModuleLoadData(&module, small_text));
	MUST(cuModuleGetFunction(&function, module, "k"));
}

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	hostile_launch(function, NULL);
	return unused;
}

static void exchange(void)
{
	CUlibrary library;
	CUkernel kernel;

	if (cuModuleUnload(module) != CUDA_SUCCESS)
		return;
	for (int i = 0; i < ROUNDS; i++) {
		MUST(cuLibraryLoadData(&library, large_text, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, library, "k"));
		if ((CUfunction)kernel == function)
			return;
		MUST(cuLibraryUnload(library));
	}
}

static void attack(void)
{
	struct hostile_code small = {.variables = ".visible .global .align 4 .b8 data[16];"};
	struct hostile_code large = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};
	pthread_t thread;

	context = hostile_begin();
	hostile_ptx(&small, small_text);
	hostile_ptx(&large, large_text);
	/* What has ended is some, as in a program that has run for a while. */
	for (int i = 0; i < ROUNDS; i++) {
		load();
		MUST(cuModuleUnload(module));
	}
	load();
	thread = hostile_begin_slowly(launch);
	exchange();
	MUST(pthread_join(thread, NULL));
	usleep(100000);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_slow_only = true,
					  .is_brief = true,
					  .slow_calls = {"cuFuncGetModule", "cuLaunchKernel"},
					  .attack = attack});
}
