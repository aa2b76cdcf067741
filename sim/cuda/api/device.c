/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and their properties. */
#include <stdio.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/part.h"
#include "sim/machine/topology.h"

ENTRY_BODY(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetCount, (int *count), (count))
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = driver.device_count;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetName, (char *name, int size, CUdevice ordinal), (name, size, ordinal))
{
	if (!name || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)size, "%s", driver.board->device_name);
	return CUDA_SUCCESS;
}

#define TOTAL_MEM(symbol, size)                                                \
	ENTRY_BODY(symbol, (size * bytes, CUdevice ordinal), (bytes, ordinal)) \
	{                                                                      \
		if (!bytes)                                                    \
			return CUDA_ERROR_INVALID_VALUE;                       \
		if (!driver_device(ordinal))                                   \
			return CUDA_ERROR_INVALID_DEVICE;                      \
		*bytes = ENTRY_BYTES(size, driver.board->total_bytes);         \
		return CUDA_SUCCESS;                                           \
	}
TOTAL_MEM(cuDeviceTotalMem_v2, size_t)
TOTAL_MEM(cuDeviceTotalMem, unsigned int)

ENTRY_BODY(cuDeviceGetUuid, (CUuuid * uuid, CUdevice ordinal), (uuid, ordinal))
{
	struct device *device = driver_device(ordinal);

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	board_uuid(driver.board, device->index, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

/* Of a part its own, where the first interface tells its card's. */
ENTRY_BODY(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice ordinal), (uuid, ordinal))
{
	struct device *device = driver_device(ordinal);

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	part_uuid(device, (uint8_t *)uuid->bytes);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetPCIBusId, (char *bus_id, int size, CUdevice ordinal), (bus_id, size, ordinal))
{
	struct device *device = driver_device(ordinal);
	unsigned int bus, slot;

	if (!bus_id || size < 13)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	board_pci(driver.board, device->index, &bus, &slot);
	snprintf(bus_id, (size_t)size, "0000:%02X:%02X.0", bus, slot);
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceGetByPCIBusId, (CUdevice * device, const char *bus_id), (device, bus_id))
{
	unsigned int domain = 0, bus, slot, function = 0;

	if (!device || !bus_id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
		domain = 0;
		if (sscanf(bus_id, "%x:%x.%x", &bus, &slot, &function) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (int i = 0; i < driver.device_count; i++) {
		unsigned int mine, my_slot;

		board_pci(driver.board, driver.device[i].index, &mine, &my_slot);
		if (domain == 0 && bus == mine && slot == my_slot && function == 0) {
			*device = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

ENTRY_BODY(cuDeviceComputeCapability, (int *major, int *minor, CUdevice ordinal),
	(major, minor, ordinal))
{
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*major = driver.board->compute_major;
	*minor = driver.board->compute_minor;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuDeviceCanAccessPeer, (int *can_access, CUdevice ordinal, CUdevice peer),
	(can_access, ordinal, peer))
{
	if (!can_access)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal) || !driver_device(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can_access = topology_has_peer(
		driver.board, driver_device(ordinal)->index, driver_device(peer)->index);
	return CUDA_SUCCESS;
}

/* Atomics go by NVLink alone. */
static bool has_p2p(CUdevice_P2PAttribute attribute, int a, int b)
{
	if (attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
		return false;
	if (attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
		return topology_has_nvlink(driver.board, a, b);
	return topology_has_peer(driver.board, a, b);
}

ENTRY_BODY(cuDeviceGetP2PAttribute,
	(int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination),
	(value, attribute, source, destination))
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(source) || !driver_device(destination) || source == destination)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
		attribute > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	*value =
		has_p2p(attribute, driver_device(source)->index, driver_device(destination)->index);
	return CUDA_SUCCESS;
}

/* Numbers that are the same on every board, from the CUDA documentation for compute 9.0. */
static const struct {
	CUdevice_attribute attribute;
	int value;
} constants[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

ENTRY_BODY(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice ordinal),
	(value, attribute, ordinal))
{
	struct device *device = driver_device(ordinal);
	const struct board *board = driver.board;
	unsigned int bus, slot;

	if (!value || attribute < 1 || attribute > 200)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	board_pci(board, device->index, &bus, &slot);
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		*value = board_numa_node(board, device->index);
		break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*value = board->clock_sm_mhz * 1000;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = board->sm_count;
		break;
	case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
		*value = board->has_ecc;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = (int)bus;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*value = (int)slot;
		break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		*value = board->clock_memory_mhz * 1000;
		break;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
		*value = board->memory_bus_bits;
		break;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		*value = (int)board->l2_bytes;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*value = board->max_threads_per_sm;
		break;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		*value = board->copy_engine_count;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = board->compute_major;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = board->compute_minor;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		*value = (int)board->shared_per_sm_bytes;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*value = (int)board->shared_optin_bytes;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*value = board->registers_per_sm;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*value = board->max_blocks_per_sm;
		break;
	case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
		*value = board->compute_major >= 9;
		break;
	default:
		/* An attribute that is not listed is 0. */
		*value = 0;
		for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
			if (constants[i].attribute == attribute)
				*value = constants[i].value;
		}
	}
	return CUDA_SUCCESS;
}

/* The same numbers as cuDeviceGetAttribute answers. */
ENTRY_BODY(cuDeviceGetProperties, (CUdevprop * properties, CUdevice ordinal), (properties, ordinal))
{
	if (!properties)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*properties = (CUdevprop){.maxThreadsPerBlock = 1024,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {2147483647, 65535, 65535},
		.sharedMemPerBlock = 49152,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = 2147483647,
		.regsPerBlock = 65536,
		.clockRate = driver.board->clock_sm_mhz * 1000,
		.textureAlign = 512};
	return CUDA_SUCCESS;
}
