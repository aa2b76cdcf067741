/* SPDX-License-Identifier: Apache-2.0 */
/* Function types of NVML: one for each exported symbol that we know; gpu/abi/nvml.h includes it. */
#pragma once

/* Functions: the library itself and the system. */

typedef nvmlReturn_t nvmlInit_fn(void);
typedef nvmlReturn_t nvmlInit_v2_fn(void);
typedef nvmlReturn_t nvmlInitWithFlags_fn(unsigned int flags);
typedef nvmlReturn_t nvmlShutdown_fn(void);
typedef const char *nvmlErrorString_fn(nvmlReturn_t result);
typedef nvmlReturn_t nvmlSystemGetDriverVersion_fn(char *version, unsigned int length);
typedef nvmlReturn_t nvmlSystemGetNVMLVersion_fn(char *version, unsigned int length);
typedef nvmlReturn_t nvmlSystemGetCudaDriverVersion_fn(int *version);
typedef nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2_fn(int *version);
typedef nvmlReturn_t nvmlSystemGetProcessName_fn(unsigned int pid, char *name, unsigned int length);

/* Functions: finding a device, and who it is. */

typedef nvmlReturn_t nvmlDeviceGetCount_fn(unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetCount_v2_fn(unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetHandleByIndex_fn(unsigned int index, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetHandleByIndex_v2_fn(unsigned int index, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetHandleByUUID_fn(const char *uuid, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetHandleBySerial_fn(const char *serial, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetHandleByPciBusId_fn(const char *bus_id, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2_fn(const char *bus_id, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetName_fn(nvmlDevice_t device, char *name, unsigned int length);
typedef nvmlReturn_t nvmlDeviceGetUUID_fn(nvmlDevice_t device, char *uuid, unsigned int length);
typedef nvmlReturn_t nvmlDeviceGetIndex_fn(nvmlDevice_t device, unsigned int *index);
typedef nvmlReturn_t nvmlDeviceGetMinorNumber_fn(nvmlDevice_t device, unsigned int *minor);
typedef nvmlReturn_t nvmlDeviceGetModuleId_fn(nvmlDevice_t device, unsigned int *module_id);
typedef nvmlReturn_t nvmlDeviceGetSerial_fn(nvmlDevice_t device, char *serial, unsigned int length);
typedef nvmlReturn_t nvmlDeviceGetPciInfo_fn(nvmlDevice_t device, nvmlPciInfo_v1_t *pci);
typedef nvmlReturn_t nvmlDeviceGetPciInfo_v2_fn(nvmlDevice_t device, nvmlPciInfo_v2_t *pci);
typedef nvmlReturn_t nvmlDeviceGetPciInfo_v3_fn(nvmlDevice_t device, nvmlPciInfo_t *pci);
typedef nvmlReturn_t nvmlDeviceGetBoardId_fn(nvmlDevice_t device, unsigned int *board_id);
typedef nvmlReturn_t nvmlDeviceGetVbiosVersion_fn(
	nvmlDevice_t device, char *version, unsigned int length);
typedef nvmlReturn_t nvmlDeviceGetBrand_fn(nvmlDevice_t device, nvmlBrandType_t *brand);
typedef nvmlReturn_t nvmlDeviceGetArchitecture_fn(
	nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture);
typedef nvmlReturn_t nvmlDeviceGetCudaComputeCapability_fn(
	nvmlDevice_t device, int *major, int *minor);
typedef nvmlReturn_t nvmlDeviceGetNumGpuCores_fn(nvmlDevice_t device, unsigned int *cores);
typedef nvmlReturn_t nvmlDeviceGetMemoryBusWidth_fn(nvmlDevice_t device, unsigned int *bits);
typedef nvmlReturn_t nvmlDeviceGetMultiGpuBoard_fn(nvmlDevice_t device, unsigned int *is_multi);
typedef nvmlReturn_t nvmlDeviceGetAttributes_fn(
	nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);
typedef nvmlReturn_t nvmlDeviceGetAttributes_v2_fn(
	nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);

/* Functions: memory and processes. */

typedef nvmlReturn_t nvmlDeviceGetMemoryInfo_fn(nvmlDevice_t device, nvmlMemory_t *memory);
typedef nvmlReturn_t nvmlDeviceGetMemoryInfo_v2_fn(nvmlDevice_t device, nvmlMemory_v2_t *memory);
typedef nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo_fn(nvmlDevice_t device, nvmlBAR1Memory_t *bar1);
typedef nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos);
typedef nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos);
typedef nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos);
typedef nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos);
typedef nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos);
typedef nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos);
typedef nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos);
typedef nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos);
typedef nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3_fn(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos);
typedef nvmlReturn_t nvmlDeviceGetRunningProcessDetailList_fn(
	nvmlDevice_t device, nvmlProcessDetailList_t *list);

typedef nvmlReturn_t nvmlDeviceGetAccountingMode_fn(nvmlDevice_t device, nvmlEnableState_t *mode);
typedef nvmlReturn_t nvmlDeviceGetAccountingBufferSize_fn(
	nvmlDevice_t device, unsigned int *processes);
typedef nvmlReturn_t nvmlDeviceGetAccountingPids_fn(
	nvmlDevice_t device, unsigned int *count, unsigned int *pids);
typedef nvmlReturn_t nvmlDeviceGetAccountingStats_fn(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats);

/* Functions: how busy it is. */

typedef nvmlReturn_t nvmlDeviceGetUtilizationRates_fn(
	nvmlDevice_t device, nvmlUtilization_t *utilization);
typedef nvmlReturn_t nvmlDeviceGetProcessUtilization_fn(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *count,
	unsigned long long last_seen_us);
typedef nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo_fn(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info);
typedef nvmlReturn_t nvmlDeviceGetEncoderUtilization_fn(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
typedef nvmlReturn_t nvmlDeviceGetDecoderUtilization_fn(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);

typedef nvmlReturn_t nvmlDeviceGetJpgUtilization_fn(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
typedef nvmlReturn_t nvmlDeviceGetOfaUtilization_fn(
	nvmlDevice_t device, unsigned int *percent, unsigned int *period_us);
typedef nvmlReturn_t nvmlDeviceGetEncoderStats_fn(nvmlDevice_t device, unsigned int *sessions,
	unsigned int *average_fps, unsigned int *average_latency_us);
typedef nvmlReturn_t nvmlDeviceGetEncoderSessions_fn(
	nvmlDevice_t device, unsigned int *count, nvmlEncoderSessionInfo_t *infos);
typedef nvmlReturn_t nvmlDeviceGetFBCSessions_fn(
	nvmlDevice_t device, unsigned int *count, nvmlFBCSessionInfo_t *infos);
typedef nvmlReturn_t nvmlDeviceGetSamples_fn(nvmlDevice_t device, nvmlSamplingType_t type,
	unsigned long long last_seen_us, nvmlValueType_t *value_type, unsigned int *count,
	nvmlSample_t *samples);
typedef nvmlReturn_t nvmlDeviceGetFieldValues_fn(
	nvmlDevice_t device, int count, nvmlFieldValue_t *values);
typedef nvmlReturn_t nvmlDeviceGetPcieThroughput_fn(
	nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kib_per_s);
typedef nvmlReturn_t nvmlDeviceGetPcieReplayCounter_fn(nvmlDevice_t device, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration_fn(
	nvmlDevice_t device, unsigned int *generation);
typedef nvmlReturn_t nvmlDeviceGetBusType_fn(nvmlDevice_t device, nvmlBusType_t *type);
typedef nvmlReturn_t nvmlDeviceGetVirtualizationMode_fn(
	nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode);
typedef nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope_fn(
	nvmlDevice_t device, unsigned int words, unsigned long *cpus, nvmlAffinityScope_t scope);
typedef nvmlReturn_t nvmlDeviceGetMemoryErrorCounter_fn(nvmlDevice_t device,
	nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
	unsigned long long *count);
typedef nvmlReturn_t nvmlDeviceGetRemappedRows_fn(nvmlDevice_t device, unsigned int *corrected,
	unsigned int *uncorrected, unsigned int *is_pending, unsigned int *has_failed);
typedef nvmlReturn_t nvmlDeviceGetTemperatureV_fn(
	nvmlDevice_t device, nvmlTemperature_t *temperature);
typedef nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons_fn(
	nvmlDevice_t device, unsigned long long *reasons);
typedef nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons_fn(
	nvmlDevice_t device, unsigned long long *reasons);
typedef nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons_fn(
	nvmlDevice_t device, unsigned long long *reasons);
typedef nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons_fn(
	nvmlDevice_t device, unsigned long long *reasons);
typedef nvmlReturn_t nvmlDeviceGetPowerState_fn(nvmlDevice_t device, nvmlPstates_t *state);
typedef nvmlReturn_t nvmlUnitGetCount_fn(unsigned int *count);
typedef nvmlReturn_t nvmlGetExcludedDeviceCount_fn(unsigned int *count);

/* Functions: power, heat, clocks, modes. */

typedef nvmlReturn_t nvmlDeviceGetTemperature_fn(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius);
typedef nvmlReturn_t nvmlDeviceGetTemperatureThreshold_fn(
	nvmlDevice_t device, nvmlTemperatureThresholds_t threshold, unsigned int *celsius);
typedef nvmlReturn_t nvmlDeviceGetFanSpeed_fn(nvmlDevice_t device, unsigned int *percent);
typedef nvmlReturn_t nvmlDeviceGetNumFans_fn(nvmlDevice_t device, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetPowerUsage_fn(nvmlDevice_t device, unsigned int *milliwatts);
typedef nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit_fn(
	nvmlDevice_t device, unsigned int *milliwatts);
typedef nvmlReturn_t nvmlDeviceGetPowerManagementLimit_fn(
	nvmlDevice_t device, unsigned int *milliwatts);
typedef nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit_fn(
	nvmlDevice_t device, unsigned int *milliwatts);
typedef nvmlReturn_t nvmlDeviceGetPowerManagementMode_fn(
	nvmlDevice_t device, nvmlEnableState_t *mode);
typedef nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption_fn(
	nvmlDevice_t device, unsigned long long *millijoules);
typedef nvmlReturn_t nvmlDeviceGetClockInfo_fn(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz);
typedef nvmlReturn_t nvmlDeviceGetMaxClockInfo_fn(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz);
typedef nvmlReturn_t nvmlDeviceGetClock_fn(
	nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz);
typedef nvmlReturn_t nvmlDeviceGetPerformanceState_fn(nvmlDevice_t device, nvmlPstates_t *state);
typedef nvmlReturn_t nvmlDeviceGetEccMode_fn(
	nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending);
typedef nvmlReturn_t nvmlDeviceGetTotalEccErrors_fn(nvmlDevice_t device, nvmlMemoryErrorType_t type,
	nvmlEccCounterType_t counter, unsigned long long *count);
typedef nvmlReturn_t nvmlDeviceGetComputeMode_fn(nvmlDevice_t device, nvmlComputeMode_t *mode);
typedef nvmlReturn_t nvmlDeviceGetPersistenceMode_fn(nvmlDevice_t device, nvmlEnableState_t *mode);
typedef nvmlReturn_t nvmlDeviceGetDisplayMode_fn(nvmlDevice_t device, nvmlEnableState_t *mode);
typedef nvmlReturn_t nvmlDeviceGetDisplayActive_fn(nvmlDevice_t device, nvmlEnableState_t *active);

/* Functions: MIG. */

typedef nvmlReturn_t nvmlDeviceGetMigMode_fn(
	nvmlDevice_t device, unsigned int *current, unsigned int *pending);
typedef nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount_fn(nvmlDevice_t device, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceIsMigDeviceHandle_fn(nvmlDevice_t device, unsigned int *is_mig);
typedef nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex_fn(
	nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig_device);
typedef nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle_fn(
	nvmlDevice_t mig_device, nvmlDevice_t *device);
typedef nvmlReturn_t nvmlDeviceGetGpuInstanceId_fn(nvmlDevice_t device, unsigned int *id);
typedef nvmlReturn_t nvmlDeviceGetComputeInstanceId_fn(nvmlDevice_t device, unsigned int *id);

/* Functions: PCIe, NVLink, topology. */

typedef nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration_fn(
	nvmlDevice_t device, unsigned int *generation);
typedef nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth_fn(nvmlDevice_t device, unsigned int *lanes);
typedef nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration_fn(
	nvmlDevice_t device, unsigned int *generation);
typedef nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth_fn(nvmlDevice_t device, unsigned int *lanes);
typedef nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor_fn(
	nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level);
typedef nvmlReturn_t nvmlDeviceGetTopologyNearestGpus_fn(nvmlDevice_t device,
	nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *devices);
typedef nvmlReturn_t nvmlDeviceGetP2PStatus_fn(
	nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status);
typedef nvmlReturn_t nvmlDeviceOnSameBoard_fn(nvmlDevice_t a, nvmlDevice_t b, int *is_same);
typedef nvmlReturn_t nvmlDeviceGetNumaNodeId_fn(nvmlDevice_t device, unsigned int *node);
typedef nvmlReturn_t nvmlDeviceGetCpuAffinity_fn(
	nvmlDevice_t device, unsigned int words, unsigned long *cpus);
typedef nvmlReturn_t nvmlDeviceGetMemoryAffinity_fn(
	nvmlDevice_t device, unsigned int words, unsigned long *nodes, nvmlAffinityScope_t scope);
typedef nvmlReturn_t nvmlDeviceGetNvLinkState_fn(
	nvmlDevice_t device, unsigned int link, nvmlEnableState_t *is_active);
typedef nvmlReturn_t nvmlDeviceGetNvLinkVersion_fn(
	nvmlDevice_t device, unsigned int link, unsigned int *version);
typedef nvmlReturn_t nvmlDeviceGetNvLinkCapability_fn(nvmlDevice_t device, unsigned int link,
	nvmlNvLinkCapability_t capability, unsigned int *has);
typedef nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType_fn(
	nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type);
typedef nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2_fn(
	nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci);

/* Functions: events. */

typedef nvmlReturn_t nvmlEventSetCreate_fn(nvmlEventSet_t *set);
typedef nvmlReturn_t nvmlEventSetFree_fn(nvmlEventSet_t set);
typedef nvmlReturn_t nvmlEventSetWait_fn(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);
typedef nvmlReturn_t nvmlEventSetWait_v2_fn(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);
typedef nvmlReturn_t nvmlDeviceRegisterEvents_fn(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
typedef nvmlReturn_t nvmlDeviceGetSupportedEventTypes_fn(
	nvmlDevice_t device, unsigned long long *types);
