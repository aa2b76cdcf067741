/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's binary interface as we know it: values, structures, and function types, never functions.
 *
 * Nothing here can be called by name: a module that wants NVML looks the symbol up and keeps a
 * pointer of type <symbol>_fn. Only what the product or the simulated node uses is described. Sizes
 * are pinned at the end; they are those of x86-64 and aarch64 Linux, driver 580.
 */
#pragma once

#include <stddef.h>

/* Values. */

/* An int-sized value on the wire; the driver may answer with numbers that are not in this list. */
typedef enum nvmlReturn_enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_ALREADY_INITIALIZED = 5,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_INSUFFICIENT_POWER = 8,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_IRQ_ISSUE = 11,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_DEPRECATED = 26,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_INVALID_STATE = 29,
	NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

/* A structure's version word: its size, and the version in the top byte. */
#define NVML_STRUCT_VERSION(type, version) ((unsigned int)(sizeof(type) | ((version) << 24u)))

/* "This figure cannot be told", in 64-bit and 32-bit fields. */
#define NVML_VALUE_NOT_AVAILABLE	       (~0ULL)
#define NVML_INSTANCE_NOT_AVAILABLE	       (~0u)

#define NVML_INIT_FLAG_NO_GPUS		       1u
#define NVML_INIT_FLAG_NO_ATTACH	       2u

#define NVML_DEVICE_NAME_BUFFER_SIZE	       64u
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE	       96u
#define NVML_DEVICE_UUID_BUFFER_SIZE	       80u
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE	       96u
#define NVML_DEVICE_SERIAL_BUFFER_SIZE	       30u
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE  32u
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE     32u
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE  16u
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80u
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE   80u

typedef enum nvmlEnableState_enum {
	NVML_FEATURE_DISABLED = 0,
	NVML_FEATURE_ENABLED = 1,
} nvmlEnableState_t;

typedef enum nvmlBrandType_enum {
	NVML_BRAND_UNKNOWN = 0,
	NVML_BRAND_QUADRO = 1,
	NVML_BRAND_TESLA = 2,
	NVML_BRAND_NVS = 3,
	NVML_BRAND_GRID = 4,
	NVML_BRAND_GEFORCE = 5,
	NVML_BRAND_TITAN = 6,
	NVML_BRAND_QUADRO_RTX = 12,
	NVML_BRAND_NVIDIA_RTX = 13,
	NVML_BRAND_NVIDIA = 14,
	NVML_BRAND_GEFORCE_RTX = 15,
	NVML_BRAND_TITAN_RTX = 16,
} nvmlBrandType_t;

typedef unsigned int nvmlDeviceArchitecture_t;
#define NVML_DEVICE_ARCH_KEPLER	   2u
#define NVML_DEVICE_ARCH_MAXWELL   3u
#define NVML_DEVICE_ARCH_PASCAL	   4u
#define NVML_DEVICE_ARCH_VOLTA	   5u
#define NVML_DEVICE_ARCH_TURING	   6u
#define NVML_DEVICE_ARCH_AMPERE	   7u
#define NVML_DEVICE_ARCH_ADA	   8u
#define NVML_DEVICE_ARCH_HOPPER	   9u
#define NVML_DEVICE_ARCH_BLACKWELL 10u
#define NVML_DEVICE_ARCH_UNKNOWN   0xffffffffu

typedef enum nvmlComputeMode_enum {
	NVML_COMPUTEMODE_DEFAULT = 0,
	NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
	NVML_COMPUTEMODE_PROHIBITED = 2,
	NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
} nvmlComputeMode_t;

typedef enum nvmlClockType_enum {
	NVML_CLOCK_GRAPHICS = 0,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEM = 2,
	NVML_CLOCK_VIDEO = 3,
	NVML_CLOCK_COUNT
} nvmlClockType_t;

typedef enum nvmlClockId_enum {
	NVML_CLOCK_ID_CURRENT = 0,
	NVML_CLOCK_ID_APP_CLOCK_TARGET = 1,
	NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
	NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3,
} nvmlClockId_t;

typedef enum nvmlTemperatureSensors_enum {
	NVML_TEMPERATURE_GPU = 0,
} nvmlTemperatureSensors_t;

typedef enum nvmlTemperatureThresholds_enum {
	NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
	NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
	NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
	NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
} nvmlTemperatureThresholds_t;

typedef enum nvmlPStates_enum {
	NVML_PSTATE_0 = 0,
	NVML_PSTATE_8 = 8,
	NVML_PSTATE_15 = 15,
	NVML_PSTATE_UNKNOWN = 32,
} nvmlPstates_t;

typedef enum nvmlGpuLevel_enum {
	NVML_TOPOLOGY_INTERNAL = 0,
	NVML_TOPOLOGY_SINGLE = 10,
	NVML_TOPOLOGY_MULTIPLE = 20,
	NVML_TOPOLOGY_HOSTBRIDGE = 30,
	NVML_TOPOLOGY_NODE = 40,
	NVML_TOPOLOGY_SYSTEM = 50,
} nvmlGpuTopologyLevel_t;

typedef enum nvmlGpuP2PStatus_enum {
	NVML_P2P_STATUS_OK = 0,
	NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
	NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
	NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
	NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
	NVML_P2P_STATUS_NOT_SUPPORTED = 5,
	NVML_P2P_STATUS_UNKNOWN = 6,
} nvmlGpuP2PStatus_t;

typedef enum nvmlGpuP2PCapsIndex_enum {
	NVML_P2P_CAPS_INDEX_READ = 0,
	NVML_P2P_CAPS_INDEX_WRITE = 1,
	NVML_P2P_CAPS_INDEX_NVLINK = 2,
	NVML_P2P_CAPS_INDEX_ATOMICS = 3,
	NVML_P2P_CAPS_INDEX_PCI = 4,
	NVML_P2P_CAPS_INDEX_UNKNOWN = 5,
} nvmlGpuP2PCapsIndex_t;

#define NVML_NVLINK_MAX_LINKS 18u

typedef enum nvmlIntNvLinkDeviceType_enum {
	NVML_NVLINK_DEVICE_TYPE_GPU = 0,
	NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1,
	NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
	NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255,
} nvmlIntNvLinkDeviceType_t;

typedef enum nvmlNvLinkCapability_enum {
	NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
	NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
	NVML_NVLINK_CAP_P2P_ATOMICS = 2,
	NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3,
	NVML_NVLINK_CAP_SLI_BRIDGE = 4,
	NVML_NVLINK_CAP_VALID = 5,
} nvmlNvLinkCapability_t;

typedef enum nvmlMemoryErrorType_enum {
	NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
	NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
} nvmlMemoryErrorType_t;

typedef enum nvmlEccCounterType_enum {
	NVML_VOLATILE_ECC = 0,
	NVML_AGGREGATE_ECC = 1,
} nvmlEccCounterType_t;

typedef enum nvmlMemoryLocation_enum {
	NVML_MEMORY_LOCATION_L1_CACHE = 0,
	NVML_MEMORY_LOCATION_L2_CACHE = 1,
	NVML_MEMORY_LOCATION_DRAM = 2,
	NVML_MEMORY_LOCATION_SRAM = 7,
	NVML_MEMORY_LOCATION_COUNT = 8,
} nvmlMemoryLocation_t;

typedef enum nvmlPcieUtilCounter_enum {
	NVML_PCIE_UTIL_TX_BYTES = 0,
	NVML_PCIE_UTIL_RX_BYTES = 1,
	NVML_PCIE_UTIL_COUNT = 2,
} nvmlPcieUtilCounter_t;

typedef unsigned int nvmlBusType_t;
#define NVML_BUS_TYPE_PCIE 2u

typedef enum nvmlGpuVirtualizationMode_enum {
	NVML_GPU_VIRTUALIZATION_MODE_NONE = 0,
} nvmlGpuVirtualizationMode_t;

typedef enum nvmlSamplingType_enum {
	NVML_TOTAL_POWER_SAMPLES = 0,
	NVML_GPU_UTILIZATION_SAMPLES = 1,
	NVML_MEMORY_UTILIZATION_SAMPLES = 2,
	NVML_ENC_UTILIZATION_SAMPLES = 3,
	NVML_DEC_UTILIZATION_SAMPLES = 4,
	NVML_PROCESSOR_CLK_SAMPLES = 5,
	NVML_MEMORY_CLK_SAMPLES = 6,
} nvmlSamplingType_t;

typedef enum nvmlValueType_enum {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
} nvmlValueType_t;

#define nvmlClocksEventReasonGpuIdle 0x1ull
#define NVML_DEVICE_MIG_DISABLE	     0u
#define NVML_DEVICE_MIG_ENABLE	     1u

/* Event types: a set of bits. */
#define nvmlEventTypeSingleBitEccError 0x01ULL
#define nvmlEventTypeDoubleBitEccError 0x02ULL
#define nvmlEventTypePState	       0x04ULL
#define nvmlEventTypeXidCriticalError  0x08ULL
#define nvmlEventTypeClock	       0x10ULL

#define NVML_AFFINITY_SCOPE_NODE       0u
#define NVML_AFFINITY_SCOPE_SOCKET     1u
typedef unsigned int nvmlAffinityScope_t;

/* Structures. */

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used; /* counts what the driver keeps for itself */
} nvmlMemory_t;

typedef struct {
	unsigned int version; /* in: nvmlMemory_v2 */
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used; /* does not count `reserved` */
} nvmlMemory_v2_t;
#define nvmlMemory_v2 NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2u)

typedef struct {
	unsigned long long bar1Total;
	unsigned long long bar1Free;
	unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory; /* or NVML_VALUE_NOT_AVAILABLE */
	unsigned int gpuInstanceId;	  /* NVML_INSTANCE_NOT_AVAILABLE without MIG */
	unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

/* The lists of nvmlDeviceGetRunningProcessDetailList; `mode` chooses. */
#define NVML_PROCESS_MODE_COMPUTE  0u
#define NVML_PROCESS_MODE_GRAPHICS 1u
#define NVML_PROCESS_MODE_MPS	   2u

typedef struct {
	unsigned int version; /* in: nvmlProcessDetailList_v1 */
	unsigned int mode;
	unsigned int numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;
#define nvmlProcessDetailList_v1 NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1u)

typedef struct {
	unsigned int gpu;    /* percent of the last sampling period in which a kernel ran */
	unsigned int memory; /* percent of it in which memory was read or written */
} nvmlUtilization_t;

typedef struct {
	unsigned int pid;
	unsigned long long timeStamp; /* us since the epoch */
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
	unsigned long long timeStamp;
	unsigned int pid;
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
	unsigned int jpgUtil;
	unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
	unsigned int version; /* in: nvmlProcessesUtilizationInfo_v1 */
	unsigned int processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;
#define nvmlProcessesUtilizationInfo_v1 NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_t, 1u)

/* A use of the video encoder, and one of the capture of a screen. */
typedef struct {
	unsigned int sessionId;
	unsigned int pid;
	unsigned int vgpuInstance; /* 0 but on a host of vGPUs */
	unsigned int codecType;
	unsigned int hResolution;
	unsigned int vResolution;
	unsigned int averageFps;
	unsigned int averageLatency; /* us */
} nvmlEncoderSessionInfo_t;

typedef struct {
	unsigned int sessionId;
	unsigned int pid;
	unsigned int vgpuInstance;
	unsigned int displayOrdinal;
	unsigned int sessionType;
	unsigned int sessionFlags;
	unsigned int hMaxResolution;
	unsigned int vMaxResolution;
	unsigned int hResolution;
	unsigned int vResolution;
	unsigned int averageFPS;
	unsigned int averageLatency;
} nvmlFBCSessionInfo_t;

typedef struct {
	unsigned int gpuUtilization; /* percent of the process's life */
	unsigned int memoryUtilization;
	unsigned long long maxMemoryUsage;
	unsigned long long time;      /* ms; 0 while it runs */
	unsigned long long startTime; /* us since the epoch */
	unsigned int isRunning;
	unsigned int reserved[5];
} nvmlAccountingStats_t;

/* nvmlDeviceGetPciInfo without a suffix: what the struct was before the sub-system was added. */
typedef struct {
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;
} nvmlPciInfo_v1_t;

typedef struct {
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;
	unsigned int pciSubSystemId;
	unsigned int reserved[4];
} nvmlPciInfo_v2_t;

typedef struct {
	char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE]; /* 0000:00:06.0 */
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId; /* device in the high half, vendor 10de in the low */
	unsigned int pciSubSystemId;
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* 00000000:00:06.0 */
} nvmlPciInfo_t;

typedef struct {
	unsigned int multiprocessorCount;
	unsigned int sharedCopyEngineCount;
	unsigned int sharedDecoderCount;
	unsigned int sharedEncoderCount;
	unsigned int sharedJpegCount;
	unsigned int sharedOfaCount;
	unsigned int gpuInstanceSliceCount;
	unsigned int computeInstanceSliceCount;
	unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType;
	unsigned long long eventData;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
} nvmlEventData_t;

typedef union {
	double dVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
} nvmlValue_t;

typedef struct {
	unsigned long long timeStamp; /* us since the epoch */
	nvmlValue_t sampleValue;
} nvmlSample_t;

/* Some of the fields of nvmlDeviceGetFieldValues. */
#define NVML_FI_DEV_ECC_CURRENT		     1u
#define NVML_FI_DEV_ECC_PENDING		     2u
#define NVML_FI_DEV_ECC_SBE_VOL_TOTAL	     3u
#define NVML_FI_DEV_ECC_DBE_VOL_TOTAL	     4u
#define NVML_FI_DEV_ECC_SBE_AGG_TOTAL	     5u
#define NVML_FI_DEV_ECC_DBE_AGG_TOTAL	     6u
#define NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION 83u
#define NVML_FI_DEV_NVLINK_LINK_COUNT	     91u
#define NVML_FI_DEV_POWER_AVERAGE	     185u
#define NVML_FI_DEV_POWER_INSTANT	     186u

typedef struct {
	unsigned int fieldId; /* in, like scopeId */
	unsigned int scopeId;
	long long timestamp; /* us since the epoch */
	long long latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn; /* of this field alone */
	nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
	unsigned int version; /* in: nvmlTemperature_v1 */
	nvmlTemperatureSensors_t sensorType;
	int temperature;
} nvmlTemperature_t;
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(nvmlTemperature_t, 1u)

#include "gpu/abi/nvml_fn.h"
#include "gpu/abi/nvml_mig.h"

/* The sizes, on which callers compiled against NVIDIA's header rely. */

_Static_assert(sizeof(nvmlReturn_t) == 4, "an int");
_Static_assert(sizeof(nvmlDevice_t) == 8, "a pointer");
_Static_assert(sizeof(nvmlMemory_t) == 24, "three counts");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "a version and four counts");
_Static_assert(nvmlMemory_v2 == 0x2000028, "measured: what the driver's own header makes of it");
_Static_assert(sizeof(nvmlBAR1Memory_t) == 24, "three counts");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "pid and bytes");
_Static_assert(sizeof(nvmlProcessInfo_v2_t) == 24, "pid, bytes, two instances");
_Static_assert(offsetof(nvmlProcessInfo_v2_t, gpuInstanceId) == 16, "after the bytes");
_Static_assert(sizeof(nvmlProcessDetail_v1_t) == 32, "v2 and a count");
_Static_assert(sizeof(nvmlProcessDetailList_t) == 24, "three words and a pointer");
_Static_assert(sizeof(nvmlUtilization_t) == 8, "two percentages");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "pid, time, four percentages");
_Static_assert(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "time, pid, six percentages");
_Static_assert(sizeof(nvmlProcessesUtilizationInfo_t) == 24, "two words, time, pointer");
_Static_assert(sizeof(nvmlEncoderSessionInfo_t) == 32, "eight words");
_Static_assert(sizeof(nvmlFBCSessionInfo_t) == 48, "twelve words");
_Static_assert(sizeof(nvmlAccountingStats_t) == 56, "two percentages, three counts, six words");
_Static_assert(sizeof(nvmlPciInfo_v1_t) == 32, "a string and four words");
_Static_assert(sizeof(nvmlPciInfo_v2_t) == 52, "a string and nine words");
_Static_assert(sizeof(nvmlPciInfo_t) == 68, "a string, five words, a longer string");
_Static_assert(offsetof(nvmlPciInfo_t, busId) == 36, "at the end");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "eight words and a count");
_Static_assert(sizeof(nvmlEventData_t) == 32, "device, two counts, two instances");
