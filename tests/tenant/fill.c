/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is linked with the driver, or with stubs of it (lazy.c): how many blocks of 64 MiB it gets. */
#include "tests/tenant/own_names.h"

#include "gpu/abi/cuda.h"

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;

EXPORT int own_fill(void)
{
	int blocks = 0;
	CUcontext context;
	CUdeviceptr block;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return -1;
	while (cuMemAlloc_v2(&block, 64u << 20) == CUDA_SUCCESS)
		blocks++;
	return blocks;
}
