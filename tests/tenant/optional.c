/* SPDX-License-Identifier: Apache-2.0 */
/* Code that uses the driver, and NVML, where they are there: it refers to them weakly. It stands in a program, and in a library of its. */
#include <stdio.h>

#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"
#include "tests/tenant/own_names.h"

#define WEAK __attribute__((weak))

/* Of each library one that is replaced comes first, and one that is not. */
WEAK cuInit_fn cuInit;
WEAK cuDeviceGetCount_fn cuDeviceGetCount;
WEAK cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
WEAK cuCtxSetCurrent_fn cuCtxSetCurrent;
WEAK cuMemAlloc_v2_fn cuMemAlloc_v2;
WEAK nvmlInit_v2_fn nvmlInit_v2;
WEAK nvmlDeviceGetName_fn nvmlDeviceGetName;

/* Addresses among data, too. */
static cuMemAlloc_v2_fn *const volatile among_data = cuMemAlloc_v2;

#ifdef OPTIONAL_PROGRAM
void program_tell(void);
void program_tell(void)
#else
EXPORT void own_tell(void)
#endif
{
	int devices = 0, blocks = 0;
	CUcontext context;
	CUdeviceptr block;

	printf("%s, %s\n", among_data ? "data" : "no data", nvmlInit_v2 ? "NVML" : "no NVML");
	if (nvmlInit_v2) {
		nvmlReturn_t r = nvmlInit_v2();

		printf("%d %d\n", r, nvmlDeviceGetName(NULL, NULL, 0));
	}
	if (!cuInit) {
		printf("no CUDA\n");
		return;
	}
	if (cuInit(0) || cuDeviceGetCount(&devices) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context))
		return;
	while (cuMemAlloc_v2(&block, 64u << 20) == CUDA_SUCCESS)
		blocks++;
	printf("%d\n", blocks);
}
