/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 that is older than most of what a program may ask for. */
#include <string.h>

#include "gpu/abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

cuInit_fn cuInit;
cuDriverGetVersion_fn cuDriverGetVersion;
cuDeviceGetCount_fn cuDeviceGetCount;
cuDeviceGet_fn cuDeviceGet;
cuDeviceGetUuid_fn cuDeviceGetUuid;
cuCtxGetDevice_fn cuCtxGetDevice;
cuMemAlloc_v2_fn cuMemAlloc_v2;
cuMemFree_v2_fn cuMemFree_v2;

EXPORT CUresult cuInit(unsigned int flags)
{
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	*version = 9000;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	memset(uuid, 0x42, sizeof(*uuid));
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	static CUdeviceptr next = 0x7f0000000000;

	*dptr = next;
	next += bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	return CUDA_SUCCESS;
}
