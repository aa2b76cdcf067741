/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads modules of 512 MiB while there is room, and prints how many; at most 16. With an NVML as argument it asks that
 * before it loads the driver, and so does the library, for the index of the device.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/abi/cuda.h"
#include "gpu/abi/nvml.h"

#define FIND(library, symbol) ((symbol##_fn *)dlsym(library, #symbol))

static int ask_nvml(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	nvmlDevice_t device;
	nvmlMemory_t memory;

	setenv("CUDA_DEVICE_MEMORY_LIMIT_0", "4g", 1);
	return !library || FIND(library, nvmlInit_v2)() != NVML_SUCCESS ||
	       FIND(library, nvmlDeviceGetHandleByIndex_v2)(0, &device) != NVML_SUCCESS ||
	       FIND(library, nvmlDeviceGetMemoryInfo)(device, &memory) != NVML_SUCCESS;
}

static int load_modules(void *library, int *ret_count)
{
	static const char text[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				   ".global .align 4 .b8 data[536870912];\n"
				   ".visible .entry k()\n{\n\tret;\n}\n";
	CUcontext context;
	CUmodule module;

	if (FIND(library, cuInit)(0) || FIND(library, cuDevicePrimaryCtxRetain)(&context, 0) ||
		FIND(library, cuCtxSetCurrent)(context))
		return 1;
	while (*ret_count < 16 && !FIND(library, cuModuleLoadData)(&module, text))
		++*ret_count;
	return 0;
}

int main(int argc, char **argv)
{
	void *library;
	int count = 0;

	if (argc > 1 && ask_nvml(argv[1]))
		return 2;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library || load_modules(library, &count))
		return 1;
	printf("%d\n", count);
	return 0;
}
