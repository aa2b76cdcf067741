/* SPDX-License-Identifier: Apache-2.0 */
/* A library with functions of its own that happen to have the driver's names. */
#include "gpu/abi/cuda.h"

#define EXPORT	   __attribute__((visibility("default")))
#define OWN_ANSWER 4711

cuMemAlloc_v2_fn cuMemAlloc_v2;
cuInit_fn cuInit;
int nvmlDeviceGetMemoryInfo(void *device, void *memory);
int curl_easy_init(void);

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	return (CUresult)OWN_ANSWER;
}

EXPORT CUresult cuInit(unsigned int flags)
{
	return (CUresult)OWN_ANSWER;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, void *memory)
{
	return OWN_ANSWER;
}

EXPORT int curl_easy_init(void)
{
	return OWN_ANSWER;
}
