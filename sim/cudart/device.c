/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and versions. */
#include <stddef.h>
#include <string.h>

#include "sim/cudart/entry.h"

static CUresult get_count(int *ret_count)
{
	return ret_count ? cuDeviceGetCount(ret_count) : CUDA_ERROR_INVALID_VALUE;
}

RUNTIME_EARLY(cudaGetDeviceCount, (int *count), get_count(count))

RUNTIME_EXPORT cudaError_t cudaDriverGetVersion(int *version);
RUNTIME_EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
	return cuDriverGetVersion(version);
}

RUNTIME_EXPORT cudaError_t cudaRuntimeGetVersion(int *version);
RUNTIME_EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = RUNTIME_MAJOR * 1000;
	return CUDA_SUCCESS;
}

RUNTIME_EARLY(cudaDeviceGetAttribute, (int *value, CUdevice_attribute attribute, int device),
	cuDeviceGetAttribute(value, attribute, device))
RUNTIME_EARLY(cudaDeviceGetPCIBusId, (char *text, int size, int device),
	cuDeviceGetPCIBusId(text, size, device))
RUNTIME_EARLY(cudaDeviceGetByPCIBusId, (int *device, const char *text),
	cuDeviceGetByPCIBusId(device, text))
RUNTIME_EARLY(cudaDeviceCanAccessPeer, (int *can_access, int device, int peer),
	cuDeviceCanAccessPeer(can_access, device, peer))
RUNTIME_EARLY(cudaDeviceGetP2PAttribute,
	(int *value, CUdevice_P2PAttribute attribute, int source, int destination),
	cuDeviceGetP2PAttribute(value, attribute, source, destination))
RUNTIME_EARLY(cudaDeviceGetDefaultMemPool, (CUmemoryPool * pool, int device),
	cuDeviceGetDefaultMemPool(pool, device))
RUNTIME_EARLY(
	cudaDeviceGetMemPool, (CUmemoryPool * pool, int device), cuDeviceGetMemPool(pool, device))
RUNTIME_EARLY(
	cudaDeviceSetMemPool, (int device, CUmemoryPool pool), cuDeviceSetMemPool(device, pool))
RUNTIME(cudaDeviceSynchronize, (void), cuCtxSynchronize())
RUNTIME(cudaDeviceGetLimit, (size_t * value, CUlimit limit), cuCtxGetLimit(value, limit))
RUNTIME(cudaDeviceSetLimit, (CUlimit limit, size_t value), cuCtxSetLimit(limit, value))
RUNTIME(cudaDeviceGetCacheConfig, (CUfunc_cache * config), cuCtxGetCacheConfig(config))
RUNTIME(cudaDeviceSetCacheConfig, (CUfunc_cache config), cuCtxSetCacheConfig(config))
RUNTIME(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
	cuCtxGetStreamPriorityRange(least, greatest))
RUNTIME(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache())
RUNTIME(cudaGetDeviceFlags, (unsigned int *flags), cuCtxGetFlags(flags))
RUNTIME(cudaDeviceGetGraphMemAttribute, (int device, CUgraphMem_attribute attribute, void *value),
	cuDeviceGetGraphMemAttribute(device, attribute, value))
RUNTIME(cudaDeviceSetGraphMemAttribute, (int device, CUgraphMem_attribute attribute, void *value),
	cuDeviceSetGraphMemAttribute(device, attribute, value))
RUNTIME(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(device))

static CUresult enable_peer(int peer, bool is_enabled)
{
	CUcontext context;
	CUresult result = cuDevicePrimaryCtxRetain(&context, peer);

	if (result != CUDA_SUCCESS)
		return result;
	result = is_enabled ? cuCtxEnablePeerAccess(context, 0) : cuCtxDisablePeerAccess(context);
	cuDevicePrimaryCtxRelease_v2(peer);
	return result;
}

RUNTIME(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags),
	flags ? CUDA_ERROR_INVALID_VALUE : enable_peer(peer, true))
RUNTIME(cudaDeviceDisablePeerAccess, (int peer), enable_peer(peer, false))
RUNTIME_EARLY(cudaSetDeviceFlags, (unsigned int flags),
	cuDevicePrimaryCtxSetFlags_v2(runtime_device(), flags))

/* cudaDeviceProp, as the two versions have it. CUDA 13 dropped the fields that stand under RUNTIME_MAJOR. */
struct properties {
	char name[256];
	CUuuid uuid;
	char luid[8];
	unsigned int luid_node_mask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if RUNTIME_MAJOR < 13
	int clockRate;
#endif
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
#if RUNTIME_MAJOR < 13
	int deviceOverlap;
#endif
	int multiProcessorCount;
#if RUNTIME_MAJOR < 13
	int kernelExecTimeoutEnabled;
#endif
	int integrated, canMapHostMemory;
#if RUNTIME_MAJOR < 13
	int computeMode, textures[39];
#else
	int textures[38];
#endif
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
	int asyncEngineCount, unifiedAddressing;
#if RUNTIME_MAJOR < 13
	int memoryClockRate;
#endif
	int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
	int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
	int hostNativeAtomicSupported;
#if RUNTIME_MAJOR < 13
	int singleToDoublePrecisionPerfRatio;
#endif
	int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
	int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if RUNTIME_MAJOR < 13
	int cooperativeMultiDeviceLaunch;
#endif
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, rest[75];
};
#if RUNTIME_MAJOR < 13
_Static_assert(sizeof(struct properties) == 1032, "cudaDeviceProp");
#else
_Static_assert(sizeof(struct properties) == 1008, "cudaDeviceProp");
#endif

#define SAME(field, attribute)                                                       \
	{                                                                            \
		CU_DEVICE_ATTRIBUTE_##attribute, offsetof(struct properties, field), \
			sizeof(((struct properties *)0)->field)                      \
	}

/* Fields that are attributes of the driver. */
static const struct {
	CUdevice_attribute attribute;
	size_t offset, size;
} fields[] = {
	SAME(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
	SAME(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
	SAME(warpSize, WARP_SIZE),
	SAME(memPitch, MAX_PITCH),
	SAME(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
	SAME(maxThreadsDim[0], MAX_BLOCK_DIM_X),
	SAME(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
	SAME(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
	SAME(maxGridSize[0], MAX_GRID_DIM_X),
	SAME(maxGridSize[1], MAX_GRID_DIM_Y),
	SAME(maxGridSize[2], MAX_GRID_DIM_Z),
	SAME(totalConstMem, TOTAL_CONSTANT_MEMORY),
	SAME(major, COMPUTE_CAPABILITY_MAJOR),
	SAME(minor, COMPUTE_CAPABILITY_MINOR),
	SAME(textureAlignment, TEXTURE_ALIGNMENT),
	SAME(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
	SAME(multiProcessorCount, MULTIPROCESSOR_COUNT),
	SAME(canMapHostMemory, CAN_MAP_HOST_MEMORY),
	SAME(concurrentKernels, CONCURRENT_KERNELS),
	SAME(ECCEnabled, ECC_ENABLED),
	SAME(pciBusID, PCI_BUS_ID),
	SAME(pciDeviceID, PCI_DEVICE_ID),
	SAME(asyncEngineCount, ASYNC_ENGINE_COUNT),
	SAME(unifiedAddressing, UNIFIED_ADDRESSING),
	SAME(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
	SAME(l2CacheSize, L2_CACHE_SIZE),
	SAME(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
	SAME(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
	SAME(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
	SAME(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
	SAME(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	SAME(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
	SAME(managedMemory, MANAGED_MEMORY),
	SAME(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
	SAME(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
	SAME(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
	SAME(cooperativeLaunch, COOPERATIVE_LAUNCH),
	SAME(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	SAME(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
	SAME(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
	SAME(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
#if RUNTIME_MAJOR < 13
	SAME(clockRate, CLOCK_RATE),
	SAME(memoryClockRate, MEMORY_CLOCK_RATE),
#endif
};

static CUresult read_properties(struct properties *ret_properties, int device)
{
	char *at = (char *)ret_properties;
	CUresult result;

	if (!ret_properties)
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret_properties, 0, sizeof(*ret_properties));
	result = cuDeviceGetName(ret_properties->name, sizeof(ret_properties->name), device);
	if (result == CUDA_SUCCESS)
		result = cuDeviceGetUuid_v2(&ret_properties->uuid, device);
	if (result == CUDA_SUCCESS)
		result = cuDeviceTotalMem_v2(&ret_properties->totalGlobalMem, device);
	for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof(fields) / sizeof(fields[0]); i++) {
		int value = 0;
		size_t wide;

		if (cuDeviceGetAttribute(&value, fields[i].attribute, device) != CUDA_SUCCESS)
			continue;
		wide = (size_t)value;
		memcpy(at + fields[i].offset,
			fields[i].size == sizeof(wide) ? (void *)&wide : &value, fields[i].size);
	}
	return result;
}

#if RUNTIME_MAJOR < 13
#define PROPERTIES cudaGetDeviceProperties_v2
#else
#define PROPERTIES cudaGetDeviceProperties
#endif
RUNTIME_EARLY(PROPERTIES, (struct properties * properties, int device),
	read_properties(properties, device))

static CUresult get_entry(const char *symbol, void **ret_function, unsigned int version,
	unsigned long long flags, CUdriverProcAddressQueryResult *ret_status)
{
	return cuGetProcAddress_v2(symbol, ret_function, (int)version, flags, ret_status);
}

RUNTIME_EARLY(cudaGetDriverEntryPointByVersion,
	(const char *symbol, void **function, unsigned int version, unsigned long long flags,
		CUdriverProcAddressQueryResult *status),
	get_entry(symbol, function, version, flags, status))
RUNTIME_EARLY(cudaGetDriverEntryPoint,
	(const char *symbol, void **function, unsigned long long flags,
		CUdriverProcAddressQueryResult *status),
	get_entry(symbol, function, RUNTIME_MAJOR * 1000, flags, status))
RUNTIME_EARLY(cudaProfilerStart, (void), cuProfilerStart())
RUNTIME_EARLY(cudaProfilerStop, (void), cuProfilerStop())
