/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread stands in a call with one library for 11 s, in a handler of a signal, while another library that is far too
 * large is used: it cannot be unloaded meanwhile.
 *
 * It stayed for good. Now the last call that was under way unloads it, and its handles are good for nothing until then.
 */
#include "tests/hostile/hostile.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static CUlibrary small, large;
static atomic_bool is_over;

static void stay(int signal)
{
	while (!is_over)
		usleep(1000);
}

static void *stand(void *unused)
{
	unsigned count;

	cuLibraryGetKernelCount(&count, small);
	return unused;
}

static void attack(void)
{
	struct hostile_code data = {
		.variables = ".visible .global .align 4 .b8 data[0x200000000];"};
	struct hostile_code nothing = {.variables = NULL};
	CUdeviceptr pointer;
	CUkernel kernel;
	pthread_t thread;
	CUresult r;
	size_t bytes;

	hostile_begin();
	usleep(1500000);
	MUST(cuMemAlloc_v2(&pointer, 2 * MIB));
	MUST(cuLibraryLoadData(&small, hostile_fat_binary(&nothing), NULL, NULL, 0, NULL, NULL, 0));
	signal(SIGUSR1, stay);
	MUST(pthread_create(&thread, NULL, stand, NULL));
	usleep(20000);
	MUST(pthread_kill(thread, SIGUSR1));
	usleep(20000);
	MUST(cuLibraryLoadData(&large, hostile_fat_binary(&data), NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuLibraryGetKernel(&kernel, large, "k"));
	r = cuLibraryGetGlobal(&pointer, &bytes, large, "data");
	/* What was put off is no way to the library in the meantime. */
	if (r != CUDA_SUCCESS)
		MUST(cuLibraryGetGlobal(&pointer, &bytes, large, "data") == CUDA_SUCCESS ||
			hostile_launch((CUfunction)kernel, NULL) == CUDA_SUCCESS);
	is_over = true;
	MUST(pthread_join(thread, NULL));
	hostile_look();
	MUST(cuLibraryUnload(large));
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .is_brief = true,
					  .slow_calls = {"cuLibraryGetKernelCount"},
					  .attack = attack});
}
