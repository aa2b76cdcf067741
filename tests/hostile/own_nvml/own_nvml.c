/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML of the tenant's own: it says of each process that it holds no more than a context takes, and else what the
 * simulated node's says. It has what the library's comparisons ask.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/abi/nvml.h"

#define EXPORT	  __attribute__((visibility("default")))
#define MOST_HELD (512ull << 20)

static void *real(const char *symbol)
{
	const char *folders = getenv("LD_LIBRARY_PATH"),
		   *last = folders ? strrchr(folders, ':') : NULL;
	static void *library;
	char path[4096];

	if (!library && last) {
		snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", last + 1);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? dlsym(library, symbol) : NULL;
}

#define FORWARD(symbol, names, ...)                              \
	EXPORT symbol##_fn symbol;                               \
	nvmlReturn_t symbol(__VA_ARGS__)                         \
	{                                                        \
		symbol##_fn *ask = (symbol##_fn *)real(#symbol); \
                                                                 \
		return ask ? ask names : NVML_ERROR_UNKNOWN;     \
	}

FORWARD(nvmlInit_v2, (), void)
FORWARD(nvmlShutdown, (), void)
FORWARD(nvmlDeviceGetCount_v2, (count), unsigned *count)
FORWARD(nvmlDeviceGetHandleByIndex_v2, (index, device), unsigned index, nvmlDevice_t *device)
FORWARD(nvmlDeviceGetHandleByUUID, (uuid, device), const char *uuid, nvmlDevice_t *device)
FORWARD(nvmlDeviceGetUUID, (device, uuid, bytes), nvmlDevice_t device, char *uuid, unsigned bytes)
FORWARD(nvmlDeviceGetMemoryInfo, (device, memory), nvmlDevice_t device, nvmlMemory_t *memory)

EXPORT nvmlDeviceGetComputeRunningProcesses_v3_fn nvmlDeviceGetComputeRunningProcesses_v3;
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *rows)
{
	nvmlDeviceGetComputeRunningProcesses_v3_fn *ask =
		(nvmlDeviceGetComputeRunningProcesses_v3_fn *)real(__func__);
	nvmlReturn_t r = ask ? ask(device, count, rows) : NVML_ERROR_UNKNOWN;

	for (unsigned i = 0; r == NVML_SUCCESS && i < *count; i++)
		if (rows[i].usedGpuMemory > MOST_HELD)
			rows[i].usedGpuMemory = MOST_HELD;
	return r;
}
