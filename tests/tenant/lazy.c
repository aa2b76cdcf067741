/* SPDX-License-Identifier: Apache-2.0 */
/* A library of stubs: each loads the driver when it is first called. A program is linked with it in place of the driver. */
#include <dlfcn.h>

#include "gpu/abi/cuda.h"
#include "tests/tenant/own_names.h"

cuInit_fn cuInit;
cuDeviceGetCount_fn cuDeviceGetCount;
cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
cuCtxSetCurrent_fn cuCtxSetCurrent;
cuMemAlloc_v2_fn cuMemAlloc_v2;

static void *find(const char *symbol)
{
	static void *library;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, symbol) : NULL;
}

#define STUB(symbol, ...)                              \
	symbol##_fn *f = (symbol##_fn *)find(#symbol); \
	return f ? f(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND

EXPORT CUresult cuInit(unsigned int flags)
{
	STUB(cuInit, flags);
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	STUB(cuDeviceGetCount, count);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	STUB(cuDevicePrimaryCtxRetain, pctx, dev);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
	STUB(cuCtxSetCurrent, ctx);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	STUB(cuMemAlloc_v2, dptr, bytes);
}
