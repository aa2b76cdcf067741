/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the functions of own.c stay its own when they are found through its handle: before the
 * driver is loaded, and after. The arguments are the library's path and, optionally, the driver's.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu/abi/cuda.h"

#define OWN_ANSWER 4711

typedef int two_pointers_fn(void *a, void *b);
typedef int nothing_fn(void);

static int check(void *own)
{
	cuMemAlloc_v2_fn *alloc = (cuMemAlloc_v2_fn *)dlsym(own, "cuMemAlloc_v2");
	cuInit_fn *init = (cuInit_fn *)dlsym(own, "cuInit");
	cuMemAlloc_v2_fn *versioned = (cuMemAlloc_v2_fn *)dlvsym(own, "cuMemAlloc_v2", "OWN_1");
	two_pointers_fn *info = (two_pointers_fn *)dlsym(own, "nvmlDeviceGetMemoryInfo");
	nothing_fn *curl = (nothing_fn *)dlsym(own, "curl_easy_init");
	CUdeviceptr block;

	if (!alloc || !init || !info || !curl || !versioned)
		return 10;
	if ((int)alloc(&block, 1) != OWN_ANSWER || (int)init(0) != OWN_ANSWER)
		return 11;
	if (info(NULL, NULL) != OWN_ANSWER || curl() != OWN_ANSWER)
		return 12;
	return (int)versioned(&block, 1) == OWN_ANSWER ? 0 : 13;
}

int main(int argc, char **argv)
{
	void *own = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void *driver;
	cuInit_fn *init;
	int r;

	if (!own)
		return 1;
	r = check(own);
	if (r || argc < 3)
		return r;
	driver = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	init = driver ? (cuInit_fn *)dlsym(driver, "cuInit") : NULL;
	if (!init || init(0) != CUDA_SUCCESS)
		return 2;
	r = check(own);
	return r ? r + 10 : 0;
}
