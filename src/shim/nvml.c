/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we ask NVML for ourselves.
 *
 * Asked seldom: when a quota is given by index, and once a slice and device to learn what a
 * context takes. NVML is loaded then if the program has not loaded it; every question is
 * bracketed by NVML's counted init and shutdown, so the program's own use of it is not disturbed.
 */
#include "shim/nvml.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu/uuid.h"
#include "shim/doors.h"

#define PROCESSES_MAX 256

static int begin(void)
{
	if (!doors_load_nvml() || !nvml.nvmlInit_v2 || nvml.nvmlInit_v2() != NVML_SUCCESS)
		return -ENODEV;
	return 0;
}

static void end(void)
{
	if (nvml.nvmlShutdown)
		nvml.nvmlShutdown();
}

static int index_of(const char *uuid, unsigned *ret_index)
{
	char text[UUID_TEXT_BYTES];
	nvmlDevice_t device;
	unsigned count;

	if (!nvml.nvmlDeviceGetCount_v2 || !nvml.nvmlDeviceGetHandleByIndex_v2 ||
		!nvml.nvmlDeviceGetUUID || nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		if (nvml.nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
			nvml.nvmlDeviceGetUUID(device, text, sizeof(text)) != NVML_SUCCESS)
			continue;
		if (strcmp(text, uuid) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	return -ENODEV;
}

int nvml_index_of(const char *uuid, unsigned *ret_index)
{
	int r = begin();

	if (r < 0)
		return r;
	r = index_of(uuid, ret_index);
	end();
	return r;
}

static int own_use(const char *uuid, uint64_t *ret_bytes)
{
	nvmlProcessInfo_t list[PROCESSES_MAX];
	unsigned count = PROCESSES_MAX;
	nvmlDevice_t device;

	if (!nvml.nvmlDeviceGetHandleByUUID || !nvml.nvmlDeviceGetComputeRunningProcesses_v3 ||
		nvml.nvmlDeviceGetHandleByUUID(uuid, &device) != NVML_SUCCESS ||
		nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		if (list[i].pid != (unsigned)getpid() || list[i].usedGpuMemory == UINT64_MAX)
			continue;
		*ret_bytes = list[i].usedGpuMemory;
		return 0;
	}
	return -ENOENT;
}

int nvml_own_use(const char *uuid, uint64_t *ret_bytes)
{
	int r = begin();

	if (r < 0)
		return r;
	r = own_use(uuid, ret_bytes);
	end();
	return r;
}
