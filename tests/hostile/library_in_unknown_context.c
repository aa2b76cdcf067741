/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of a library with 2 GiB of variables is launched in a context. Then the device's primary context, whose handle is
 * known from before, is retained again, and another thread launches the kernel there before the call returns.
 *
 * As long as one context was known, a kernel was known by its handle alone, so nothing was reserved for the second load: 5 GiB
 * were held in a slice of 4, until the new context was found too large. Now that is so until a second one is asked for.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

static CUcontext primary;
static CUkernel kernel;
static _Atomic bool is_over;

static void *launch(void *unused)
{
	while (!atomic_load(&is_over))
		if (cuCtxSetCurrent(primary) == CUDA_SUCCESS &&
			hostile_launch((CUfunction)kernel, NULL) == CUDA_SUCCESS)
			break;
	return unused;
}

static void attack(void)
{
	char text[HOSTILE_CODE_BYTES];
	CUcontext context;
	CUlibrary library;
	pthread_t thread;

	primary = hostile_begin();
	MUST(cuDevicePrimaryCtxRelease_v2(0));
	MUST(cuCtxCreate_v2(&context, 0, 0));
	hostile_ptx(
		&(struct hostile_code){
			.variables = ".visible .global .align 8 .b8 data[2147483648];\n"},
		text);
	MUST(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&kernel, library, "k"));
	MUST(hostile_launch((CUfunction)kernel, NULL));
	MUST(cuCtxSynchronize());
	MUST(pthread_create(&thread, NULL, launch, NULL));
	cuDevicePrimaryCtxRetain(&primary, 0);
	usleep(20000);
	atomic_store(&is_over, true);
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"nvmlDeviceGetComputeRunningProcesses_v3"},
					  .is_slow_only = true,
					  .attack = attack});
}
