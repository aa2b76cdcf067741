/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vgpu-sim smi reads through libnvidia-ml.so.1.
 *
 * The library is opened and its functions are looked up by name in the plain way: a preloaded
 * tenant library replaces both, and what is then shown is what a tenant sees. The tool's own
 * knowledge of the machine is deliberately not used here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/tool/command.h"
#include "sim/tool/smi.h"

static int load(struct smi_library *library)
{
	void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (!handle)
		return tool_complain("smi", -1,
			"%s (the simulated one is in the folder vgpu/sim of the libraries: put it "
			"on LD_LIBRARY_PATH)",
			dlerror());
#define LOOK_UP(symbol) library->symbol = (symbol##_fn *)dlsym(handle, #symbol);
	SMI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	if (!library->nvmlInit_v2 || !library->nvmlDeviceGetCount_v2 ||
		!library->nvmlDeviceGetHandleByIndex_v2 || !library->nvmlShutdown ||
		!library->nvmlErrorString)
		return tool_complain(
			"smi", -1, "libnvidia-ml.so.1 lacks the functions to begin with");
	return 0;
}

/* Calls a function that may be missing; what cannot be read stays zero. */
#define TRY(library, symbol, ...) \
	((library)->symbol ? (library)->symbol(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

static void read_memory(const struct smi_library *library, struct smi_device *device)
{
	nvmlMemory_t memory = {0};

	device->memory.version = nvmlMemory_v2;
	if (TRY(library, nvmlDeviceGetMemoryInfo_v2, device->handle, &device->memory) ==
		NVML_SUCCESS)
		return;
	TRY(library, nvmlDeviceGetMemoryInfo, device->handle, &memory);
	device->memory =
		(nvmlMemory_v2_t){.total = memory.total, .free = memory.free, .used = memory.used};
}

typedef nvmlDeviceGetComputeRunningProcesses_v3_fn list_fn;

/* Adds a list's processes; a list that cannot be had has none. */
static void read_list(struct smi_device *device, list_fn *list, const char *type)
{
	_cleanup_free_ nvmlProcessInfo_t *infos = calloc(SMI_PROCESSES_MAX, sizeof(*infos));
	unsigned int count = SMI_PROCESSES_MAX - device->process_count;

	if (!infos || !list || list(device->handle, &count, infos) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++)
		device->processes[device->process_count++] = (struct smi_process){
			.pid = infos[i].pid, .used_bytes = infos[i].usedGpuMemory, .type = type};
}

static void read_work(const struct smi_library *library, struct smi_device *device)
{
	nvmlProcessUtilizationSample_t samples[SMI_SAMPLES_MAX];
	unsigned int count = SMI_SAMPLES_MAX;

	if (TRY(library, nvmlDeviceGetProcessUtilization, device->handle, samples, &count, 0) !=
		NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < device->process_count; j++) {
			struct smi_process *process = &device->processes[j];

			if (process->pid != samples[i].pid)
				continue;
			process->has_worked = true;
			process->sm_percent = samples[i].smUtil;
			process->memory_percent = samples[i].memUtil;
		}
}

static void read_processes(const struct smi_library *library, struct smi_device *device)
{
	device->processes = calloc(SMI_PROCESSES_MAX, sizeof(*device->processes));
	if (!device->processes)
		return;
	read_list(device, library->nvmlDeviceGetComputeRunningProcesses_v3, "C");
	read_list(device, library->nvmlDeviceGetMPSComputeRunningProcesses_v3, "M+C");
	read_list(device, library->nvmlDeviceGetGraphicsRunningProcesses_v3, "G");
	read_work(library, device);
}

static int read_device(
	const struct smi_library *library, unsigned int index, struct smi_device *device)
{
	nvmlUtilization_t utilization = {0};
	nvmlReturn_t result = library->nvmlDeviceGetHandleByIndex_v2(index, &device->handle);

	if (result != NVML_SUCCESS)
		return tool_complain(
			"smi", -1, "device %u: %s", index, library->nvmlErrorString(result));
	device->index = index;
	TRY(library, nvmlDeviceGetName, device->handle, device->name, sizeof(device->name));
	TRY(library, nvmlDeviceGetUUID, device->handle, device->uuid, sizeof(device->uuid));
	TRY(library, nvmlDeviceGetPciInfo_v3, device->handle, &device->pci);
	TRY(library, nvmlDeviceGetUtilizationRates, device->handle, &utilization);
	device->busy_percent = utilization.gpu;
	TRY(library, nvmlDeviceGetTemperature, device->handle, NVML_TEMPERATURE_GPU,
		&device->celsius);
	TRY(library, nvmlDeviceGetPowerUsage, device->handle, &device->power_mw);
	TRY(library, nvmlDeviceGetEnforcedPowerLimit, device->handle, &device->power_limit_mw);
	TRY(library, nvmlDeviceGetBAR1MemoryInfo, device->handle, &device->bar1);
	read_memory(library, device);
	read_processes(library, device);
	return 0;
}

int smi_read(struct smi *ret_smi)
{
	const struct smi_library *library = &ret_smi->library;
	unsigned int count = 0;
	nvmlReturn_t result;

	memset(ret_smi, 0, sizeof(*ret_smi));
	if (load(&ret_smi->library))
		return -1;
	result = library->nvmlInit_v2();
	if (result == NVML_SUCCESS)
		result = library->nvmlDeviceGetCount_v2(&count);
	if (result != NVML_SUCCESS)
		return tool_complain("smi", -1, "%s", library->nvmlErrorString(result));
	TRY(library, nvmlSystemGetDriverVersion, ret_smi->driver_version,
		sizeof(ret_smi->driver_version));
	TRY(library, nvmlSystemGetCudaDriverVersion_v2, &ret_smi->cuda_version);
	if (count > SMI_DEVICES_MAX)
		count = SMI_DEVICES_MAX;
	for (unsigned int i = 0; i < count; i++) {
		if (read_device(library, i, &ret_smi->device[i]))
			return -1;
		ret_smi->device_count++;
	}
	return 0;
}

void smi_free(struct smi *smi)
{
	for (unsigned int i = 0; i < SMI_DEVICES_MAX; i++)
		free(smi->device[i].processes);
	if (smi->library.nvmlShutdown)
		smi->library.nvmlShutdown();
}

const char *smi_process_name(
	const struct smi *smi, unsigned int pid, char *buffer, unsigned int size)
{
	if (TRY(&smi->library, nvmlSystemGetProcessName, pid, buffer, size) != NVML_SUCCESS)
		snprintf(buffer, size, "?");
	return buffer;
}
