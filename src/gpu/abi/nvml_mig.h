/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's instances of a GPU (MIG); gpu/abi/nvml.h includes it. */
#pragma once

typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;

/* Kinds of instances by the slices of processors. They are not the ids of profiles. */
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE	    0x0u
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE	    0x1u
#define NVML_GPU_INSTANCE_PROFILE_3_SLICE	    0x2u
#define NVML_GPU_INSTANCE_PROFILE_4_SLICE	    0x3u
#define NVML_GPU_INSTANCE_PROFILE_7_SLICE	    0x4u
#define NVML_GPU_INSTANCE_PROFILE_8_SLICE	    0x5u
#define NVML_GPU_INSTANCE_PROFILE_6_SLICE	    0x6u
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1	    0x7u /* with the engines for media */
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1	    0x8u
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2	    0x9u /* with twice the memory */
#define NVML_GPU_INSTANCE_PROFILE_COUNT		    0x12u /* of the newest NVML; older ones know fewer */

#define NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE	    0x0u
#define NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE	    0x1u
#define NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE	    0x2u
#define NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE	    0x3u
#define NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE	    0x4u
#define NVML_COMPUTE_INSTANCE_PROFILE_COUNT	    0x9u
#define NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED 0x0u

typedef struct {
	unsigned int start; /* slices of memory */
	unsigned int size;
} nvmlGpuInstancePlacement_t;
typedef nvmlGpuInstancePlacement_t nvmlComputeInstancePlacement_t;

typedef struct {
	unsigned int id;
	unsigned int isP2pSupported;
	unsigned int sliceCount;
	unsigned int instanceCount;
	unsigned int multiprocessorCount;
	unsigned int copyEngineCount;
	unsigned int decoderCount;
	unsigned int encoderCount;
	unsigned int jpegCount;
	unsigned int ofaCount;
	unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct {
	unsigned int version;
	unsigned int id;
	unsigned int isP2pSupported;
	unsigned int sliceCount;
	unsigned int instanceCount;
	unsigned int multiprocessorCount;
	unsigned int copyEngineCount;
	unsigned int decoderCount;
	unsigned int encoderCount;
	unsigned int jpegCount;
	unsigned int ofaCount;
	unsigned long long memorySizeMB;
	char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE]; /* "MIG 1g.5gb" */
} nvmlGpuInstanceProfileInfo_v2_t;
#define nvmlGpuInstanceProfileInfo_v2 NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2u)

typedef struct {
	nvmlDevice_t device;
	unsigned int id;
	unsigned int profileId;
	nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct {
	unsigned int id;
	unsigned int sliceCount;
	unsigned int instanceCount;
	unsigned int multiprocessorCount;
	unsigned int sharedCopyEngineCount;
	unsigned int sharedDecoderCount;
	unsigned int sharedEncoderCount;
	unsigned int sharedJpegCount;
	unsigned int sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct {
	nvmlDevice_t device;
	nvmlGpuInstance_t gpuInstance;
	unsigned int id;
	unsigned int profileId;
	nvmlComputeInstancePlacement_t placement; /* slices of processors */
} nvmlComputeInstanceInfo_t;

typedef nvmlReturn_t nvmlDeviceSetMigMode_fn(
	nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation);
typedef nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo_fn(
	nvmlDevice_t device, unsigned int kind, nvmlGpuInstanceProfileInfo_t *info);
typedef nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV_fn(
	nvmlDevice_t device, unsigned int kind, nvmlGpuInstanceProfileInfo_v2_t *info);
typedef nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_fn(nvmlDevice_t device,
	unsigned int profile, nvmlGpuInstancePlacement_t *placements, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2_fn(nvmlDevice_t device,
	unsigned int profile, nvmlGpuInstancePlacement_t *placements, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity_fn(
	nvmlDevice_t device, unsigned int profile, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceCreateGpuInstance_fn(
	nvmlDevice_t device, unsigned int profile, nvmlGpuInstance_t *instance);
typedef nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement_fn(nvmlDevice_t device,
	unsigned int profile, const nvmlGpuInstancePlacement_t *placement,
	nvmlGpuInstance_t *instance);
typedef nvmlReturn_t nvmlDeviceGetGpuInstances_fn(nvmlDevice_t device, unsigned int profile,
	nvmlGpuInstance_t *instances, unsigned int *count);
typedef nvmlReturn_t nvmlDeviceGetGpuInstanceById_fn(
	nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance);
typedef nvmlReturn_t nvmlGpuInstanceDestroy_fn(nvmlGpuInstance_t instance);
typedef nvmlReturn_t nvmlGpuInstanceGetInfo_fn(
	nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info);
typedef nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo_fn(nvmlGpuInstance_t instance,
	unsigned int kind, unsigned int engines, nvmlComputeInstanceProfileInfo_t *info);
typedef nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity_fn(
	nvmlGpuInstance_t instance, unsigned int profile, unsigned int *count);
typedef nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements_fn(
	nvmlGpuInstance_t instance, unsigned int profile,
	nvmlComputeInstancePlacement_t *placements, unsigned int *count);
typedef nvmlReturn_t nvmlGpuInstanceCreateComputeInstance_fn(
	nvmlGpuInstance_t instance, unsigned int profile, nvmlComputeInstance_t *compute);
typedef nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement_fn(
	nvmlGpuInstance_t instance, unsigned int profile,
	const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *compute);
typedef nvmlReturn_t nvmlGpuInstanceGetComputeInstances_fn(nvmlGpuInstance_t instance,
	unsigned int profile, nvmlComputeInstance_t *computes, unsigned int *count);
typedef nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById_fn(
	nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *compute);
typedef nvmlReturn_t nvmlComputeInstanceDestroy_fn(nvmlComputeInstance_t compute);
typedef nvmlReturn_t nvmlComputeInstanceGetInfo_fn(
	nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info);
typedef nvmlReturn_t nvmlComputeInstanceGetInfo_v2_fn(
	nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info);

_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_t) == 48, "ten words and a count");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_v2_t) == 152, "eleven words, a count, a name");
_Static_assert(sizeof(nvmlGpuInstanceInfo_t) == 24, "device and four words");
_Static_assert(sizeof(nvmlComputeInstanceProfileInfo_t) == 36, "nine words");
_Static_assert(sizeof(nvmlComputeInstanceInfo_t) == 32, "two handles and four words");
