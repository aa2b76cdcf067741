/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a device, and who it is. Devices are counted in the order of the PCI bus. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/nvml/answer.h"
#include "sim/nvml/node.h"

static void device_uuid(int index, char ret_text[MACHINE_UUID_SIZE])
{
	uint8_t uuid[16];

	board_uuid(node_board(), index, uuid);
	machine_uuid_text(uuid, ret_text);
}

static void device_serial(int index, char ret_text[NVML_DEVICE_SERIAL_BUFFER_SIZE])
{
	snprintf(ret_text, NVML_DEVICE_SERIAL_BUFFER_SIZE, "%" PRIu64,
		board_serial(node_board(), index));
}

static nvmlReturn_t count_devices(unsigned int *count)
{
	REQUIRE(count);
	*count = (unsigned int)node_board()->device_count;
	return NVML_SUCCESS;
}

BODY(nvmlDeviceGetCount, unsigned int *count)
{
	ENTER(nvmlDeviceGetCount);
	return count_devices(count);
}

BODY(nvmlDeviceGetCount_v2, unsigned int *count)
{
	ENTER(nvmlDeviceGetCount_v2);
	return count_devices(count);
}

static nvmlReturn_t find_by_index(unsigned int index, nvmlDevice_t *device)
{
	REQUIRE(device && index < (unsigned int)node_board()->device_count);
	*device = node_handle((int)index);
	return NVML_SUCCESS;
}

BODY(nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device)
{
	ENTER(nvmlDeviceGetHandleByIndex);
	return find_by_index(index, device);
}

BODY(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device)
{
	ENTER(nvmlDeviceGetHandleByIndex_v2);
	return find_by_index(index, device);
}

/* Letter by letter: the driver does not take capitals (measured). */
BODY(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
	char text[MACHINE_UUID_SIZE];

	ENTER(nvmlDeviceGetHandleByUUID);
	REQUIRE(uuid && device);
	for (int i = 0; i < node_board()->device_count; i++) {
		device_uuid(i, text);
		if (!strcmp(uuid, text)) {
			*device = node_handle(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

BODY(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
	char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];

	ENTER(nvmlDeviceGetHandleBySerial);
	REQUIRE(serial && device);
	for (int i = 0; i < node_board()->device_count; i++) {
		device_serial(i, text);
		if (!strcmp(serial, text)) {
			*device = node_handle(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* "domain:bus:slot.function" or without the domain; all hexadecimal. */
static nvmlReturn_t find_by_pci(const char *bus_id, nvmlDevice_t *device)
{
	unsigned int domain = 0, bus, slot, function, device_bus, device_slot;
	int end = 0;

	REQUIRE(bus_id && device);
	if (sscanf(bus_id, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 ||
		bus_id[end]) {
		domain = 0;
		end = 0;
		if (sscanf(bus_id, "%2x:%2x.%1x%n", &bus, &slot, &function, &end) != 3 ||
			bus_id[end])
			return NVML_ERROR_INVALID_ARGUMENT;
	}
	for (int i = 0; i < node_board()->device_count; i++) {
		board_pci(node_board(), i, &device_bus, &device_slot);
		if (!domain && bus == device_bus && slot == device_slot && !function) {
			*device = node_handle(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

BODY(nvmlDeviceGetHandleByPciBusId, const char *bus_id, nvmlDevice_t *device)
{
	ENTER(nvmlDeviceGetHandleByPciBusId);
	return find_by_pci(bus_id, device);
}

BODY(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, nvmlDevice_t *device)
{
	ENTER(nvmlDeviceGetHandleByPciBusId_v2);
	return find_by_pci(bus_id, device);
}

BODY(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
{
	ENTER(nvmlDeviceGetName);
	REQUIRE(node_index(device) >= 0);
	return node_reply_text(node_board()->device_name, name, length);
}

BODY(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[MACHINE_UUID_SIZE];

	ENTER(nvmlDeviceGetUUID);
	REQUIRE(node_index(device) >= 0);
	device_uuid(node_index(device), text);
	return node_reply_text(text, uuid, length);
}

BODY(nvmlDeviceGetSerial, nvmlDevice_t device, char *serial, unsigned int length)
{
	char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];

	ENTER(nvmlDeviceGetSerial);
	REQUIRE(node_index(device) >= 0);
	device_serial(node_index(device), text);
	return node_reply_text(text, serial, length);
}

BODY(nvmlDeviceGetVbiosVersion, nvmlDevice_t device, char *version, unsigned int length)
{
	ENTER(nvmlDeviceGetVbiosVersion);
	REQUIRE(node_index(device) >= 0);
	return node_reply_text(node_board()->vbios, version, length);
}

static unsigned int pci_slot(int index)
{
	unsigned int bus, slot;

	board_pci(node_board(), index, &bus, &slot);
	return bus << 8 | slot;
}

ANSWER(nvmlDeviceGetIndex, unsigned int, index)
ANSWER(nvmlDeviceGetMinorNumber, unsigned int, index)
ANSWER(nvmlDeviceGetModuleId, unsigned int, index + 1)
ANSWER(nvmlDeviceGetBoardId, unsigned int, pci_slot(index))
ANSWER(nvmlDeviceGetBrand, nvmlBrandType_t, node_board()->brand)
ANSWER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, node_board()->architecture)
ANSWER(nvmlDeviceGetNumGpuCores, unsigned int, node_board()->sm_count *node_board()->cores_per_sm)
ANSWER(nvmlDeviceGetMemoryBusWidth, unsigned int, node_board()->memory_bus_bits)
ANSWER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)

BODY(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor)
{
	ENTER(nvmlDeviceGetCudaComputeCapability);
	REQUIRE(node_index(device) >= 0 && major && minor);
	*major = node_board()->compute_major;
	*minor = node_board()->compute_minor;
	return NVML_SUCCESS;
}

/* Only of MIG devices (measured: a whole H200 answers so). */
BODY(nvmlDeviceGetAttributes, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	ENTER(nvmlDeviceGetAttributes);
	REQUIRE(node_index(device) >= 0 && attributes);
	return NVML_ERROR_NOT_SUPPORTED;
}

BODY(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	ENTER(nvmlDeviceGetAttributes_v2);
	REQUIRE(node_index(device) >= 0 && attributes);
	return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlPciInfo_t pci_info(int index)
{
	nvmlPciInfo_t pci = {0};

	board_pci(node_board(), index, &pci.bus, &pci.device);
	pci.pciDeviceId = (unsigned int)node_board()->pci_device_id;
	pci.pciSubSystemId = (unsigned int)node_board()->pci_subsystem_id;
	snprintf(pci.busIdLegacy, sizeof(pci.busIdLegacy), "%04X:%02X:%02X.0", 0u, pci.bus & 0xff,
		pci.device & 0x1f);
	snprintf(pci.busId, sizeof(pci.busId), "%08X:%02X:%02X.0", 0u, pci.bus & 0xff,
		pci.device & 0x1f);
	return pci;
}

BODY(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_v1_t *pci)
{
	nvmlPciInfo_t full;

	ENTER(nvmlDeviceGetPciInfo);
	REQUIRE(node_index(device) >= 0 && pci);
	full = pci_info(node_index(device));
	memcpy(pci, &full, sizeof(*pci));
	return NVML_SUCCESS;
}

/* The driver leaves `reserved` as it is (measured). */
BODY(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t full;

	ENTER(nvmlDeviceGetPciInfo_v2);
	REQUIRE(node_index(device) >= 0 && pci);
	full = pci_info(node_index(device));
	memcpy(pci, &full, offsetof(nvmlPciInfo_v2_t, reserved));
	return NVML_SUCCESS;
}

BODY(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	ENTER(nvmlDeviceGetPciInfo_v3);
	REQUIRE(node_index(device) >= 0 && pci);
	*pci = pci_info(node_index(device));
	return NVML_SUCCESS;
}
