/* SPDX-License-Identifier: Apache-2.0 */
/* A library that loads the driver by itself, and keeps its functions in pointers of their names. */
#include "tests/tenant/own_names.h"

#include <dlfcn.h>
#include <stddef.h>

#include "gpu/abi/cuda.h"

EXPORT cuInit_fn *cuInit;
EXPORT cuDevicePrimaryCtxRetain_fn *cuDevicePrimaryCtxRetain;
EXPORT cuCtxSetCurrent_fn *cuCtxSetCurrent;
EXPORT cuMemAlloc_v2_fn *cuMemAlloc_v2;

#define FIND(symbol) symbol = (symbol##_fn *)dlsym(library, #symbol)

EXPORT int own_fill(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int blocks = 0;
	CUcontext context;
	CUdeviceptr block;

	if (!library)
		return -1;
	FIND(cuInit);
	FIND(cuDevicePrimaryCtxRetain);
	FIND(cuCtxSetCurrent);
	FIND(cuMemAlloc_v2);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return -1;
	while (cuMemAlloc_v2(&block, 64u << 20) == CUDA_SUCCESS)
		blocks++;
	return blocks;
}
