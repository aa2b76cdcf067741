/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu-sim smi reads through libnvidia-ml.so.1. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/nvml.h"

#define SMI_DEVICES_MAX	  64u
#define SMI_PROCESSES_MAX 1024u
#define SMI_SAMPLES_MAX	  1024u

/* The functions that smi calls; NULL where the library lacks one. */
struct smi_library {
#define SMI_FUNCTIONS(F)                            \
	F(nvmlInit_v2)                              \
	F(nvmlShutdown)                             \
	F(nvmlErrorString)                          \
	F(nvmlSystemGetDriverVersion)               \
	F(nvmlSystemGetCudaDriverVersion_v2)        \
	F(nvmlSystemGetProcessName)                 \
	F(nvmlDeviceGetCount_v2)                    \
	F(nvmlDeviceGetHandleByIndex_v2)            \
	F(nvmlDeviceGetName)                        \
	F(nvmlDeviceGetUUID)                        \
	F(nvmlDeviceGetPciInfo_v3)                  \
	F(nvmlDeviceGetMemoryInfo)                  \
	F(nvmlDeviceGetMemoryInfo_v2)               \
	F(nvmlDeviceGetUtilizationRates)            \
	F(nvmlDeviceGetTemperature)                 \
	F(nvmlDeviceGetPowerUsage)                  \
	F(nvmlDeviceGetEnforcedPowerLimit)          \
	F(nvmlDeviceGetBAR1MemoryInfo)              \
	F(nvmlDeviceGetProcessUtilization)          \
	F(nvmlDeviceGetComputeRunningProcesses_v3)  \
	F(nvmlDeviceGetGraphicsRunningProcesses_v3) \
	F(nvmlDeviceGetMPSComputeRunningProcesses_v3)
#define FIELD(symbol) symbol##_fn *symbol;
	SMI_FUNCTIONS(FIELD)
#undef FIELD
};

struct smi_process {
	unsigned int pid;
	unsigned long long used_bytes;
	const char *type; /* C, M+C or G */
	bool has_worked;
	unsigned int sm_percent, memory_percent; /* where it has */
};

struct smi_device {
	unsigned int index;
	nvmlDevice_t handle;
	char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlPciInfo_t pci;
	nvmlMemory_v2_t memory;
	nvmlBAR1Memory_t bar1;
	unsigned int busy_percent;
	unsigned int celsius;
	unsigned int power_mw;
	unsigned int power_limit_mw;
	unsigned int process_count;
	struct smi_process *processes; /* process_count of them, to be freed */
};

struct smi {
	struct smi_library library;
	char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
	int cuda_version;
	unsigned int device_count;
	struct smi_device device[SMI_DEVICES_MAX];
};

/*
 * Finds libnvidia-ml.so.1 by name, as every program does, so that what stands before it in the
 * process has its say; reads everything once. Returns 0, or -1 after a sentence on stderr.
 */
int smi_read(struct smi *ret_smi);
void smi_free(struct smi *smi);

/* All of each device with its processes; and the processes with their work. */
void smi_print_full(const struct smi *smi);
void smi_print_work(const struct smi *smi);

/* The name of a process, or "?". */
const char *smi_process_name(
	const struct smi *smi, unsigned int pid, char *buffer, unsigned int size);
