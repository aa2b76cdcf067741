/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA program that is built with a sanitizer. It has a thread take blocks of 64 MiB until it is refused, and prints how many it got. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/abi/cuda.h"

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;

/* Its run time wants to be the first library. What the driver keeps is not the program's leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0:detect_leaks=0";
}

static void *fill(void *data)
{
	cuMemAlloc_v2_fn *alloc = (cuMemAlloc_v2_fn *)dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	int *blocks = data;
	CUcontext context;
	CUdeviceptr block;

	if (alloc && !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) &&
		!cuCtxSetCurrent(context))
		while (alloc(&block, 64u << 20) == CUDA_SUCCESS)
			++*blocks;
	return NULL;
}

int main(void)
{
	int *blocks = calloc(1, sizeof(*blocks));
	pthread_t thread;

	if (pthread_create(&thread, NULL, fill, blocks) || pthread_join(thread, NULL))
		return 1;
	printf("%d\n", *blocks);
	free(blocks);
	return 0;
}
