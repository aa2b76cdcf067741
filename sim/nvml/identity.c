/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a device, and who it is. Devices are counted in the order of the PCI bus. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/nvml/entry.h"

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

ENTRY_BODY(nvmlDeviceGetCount, (unsigned int *count), (count))
{
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = (unsigned int)node_count();
	return NVML_SUCCESS;
}
ENTRY_ALIAS(nvmlDeviceGetCount_v2, nvmlDeviceGetCount, (unsigned int *count), (count))

/* A card that is lost has no handle. */
static nvmlReturn_t reply_handle(int index, nvmlDevice_t *ret_device)
{
	nvmlReturn_t result = node_check(node_handle(index));

	if (result == NVML_SUCCESS)
		*ret_device = node_handle(index);
	return result;
}

ENTRY_BODY(nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device), (index, device))
{
	if (!device || index >= (unsigned int)node_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	return reply_handle(node_visible((int)index), device);
}
ENTRY_ALIAS(nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex,
	(unsigned int index, nvmlDevice_t *device), (index, device))

static nvmlReturn_t find_part(const char *uuid, nvmlDevice_t *ret_device)
{
	char text[MACHINE_UUID_SIZE];
	nvmlDevice_t found = NULL;
	struct part part;

	for (int i = 0; i < node_count(); i++)
		for (unsigned int number = 0;
			(found = part_at(node_visible(i), number, &part)) != NULL; number++) {
			part_uuid_text(&part, text);
			if (strcmp(uuid, text) != 0)
				continue;
			if (node_check(node_handle(part.index)) != NVML_SUCCESS)
				return NVML_ERROR_GPU_IS_LOST;
			*ret_device = found;
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

/* Letter by letter: the driver does not take capitals (measured). */
ENTRY_BODY(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device), (uuid, device))
{
	char text[MACHINE_UUID_SIZE];

	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < node_count(); i++) {
		device_uuid(node_visible(i), text);
		if (!strcmp(uuid, text))
			return reply_handle(node_visible(i), device);
	}
	return find_part(uuid, device);
}

ENTRY_BODY(
	nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice_t *device), (serial, device))
{
	char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];

	if (!serial || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < node_count(); i++) {
		device_serial(node_visible(i), text);
		if (!strcmp(serial, text))
			return reply_handle(node_visible(i), device);
	}
	return NVML_ERROR_NOT_FOUND;
}

/* "domain:bus:slot.function" or without the domain; all hexadecimal. */
ENTRY_BODY(
	nvmlDeviceGetHandleByPciBusId, (const char *bus_id, nvmlDevice_t *device), (bus_id, device))
{
	unsigned int domain = 0, bus, slot, function, device_bus, device_slot;
	int end = 0;

	if (!bus_id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (sscanf(bus_id, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 ||
		bus_id[end]) {
		domain = 0;
		end = 0;
		if (sscanf(bus_id, "%2x:%2x.%1x%n", &bus, &slot, &function, &end) != 3 ||
			bus_id[end])
			return NVML_ERROR_INVALID_ARGUMENT;
	}
	for (int i = 0; i < node_count(); i++) {
		board_pci(node_board(), node_visible(i), &device_bus, &device_slot);
		if (!domain && bus == device_bus && slot == device_slot && !function)
			return reply_handle(node_visible(i), device);
	}
	return NVML_ERROR_NOT_FOUND;
}
ENTRY_ALIAS(nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetHandleByPciBusId,
	(const char *bus_id, nvmlDevice_t *device), (bus_id, device))

ENTRY_PART(nvmlDeviceGetName, (char *name, unsigned int length), (name, length))
{
	char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE + 32];

	if (part->is_whole)
		return node_reply_text(node_board()->device_name, name, length);
	if (part->slices == part->profile->slices)
		snprintf(text, sizeof(text), "%s MIG %s", node_board()->device_name,
			part->profile->name);
	else
		snprintf(text, sizeof(text), "%s MIG %uc.%s", node_board()->device_name,
			part->slices, part->profile->name);
	return node_reply_text(text, name, length);
}

ENTRY_PART(nvmlDeviceGetUUID, (char *uuid, unsigned int length), (uuid, length))
{
	char text[MACHINE_UUID_SIZE];

	part_uuid_text(part, text);
	return node_reply_text(text, uuid, length);
}

ENTRY_DEVICE(nvmlDeviceGetSerial, (char *serial, unsigned int length), (serial, length))
{
	char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];

	device_serial(index, text);
	return node_reply_text(text, serial, length);
}

ENTRY_DEVICE(nvmlDeviceGetVbiosVersion, (char *version, unsigned int length), (version, length))
{
	return node_reply_text(node_board()->vbios, version, length);
}

static unsigned int pci_slot(int index)
{
	unsigned int bus, slot;

	board_pci(node_board(), index, &bus, &slot);
	return bus << 8 | slot;
}

/* Of a part, its number among those of its card. */
ENTRY_PART(nvmlDeviceGetIndex, (unsigned int *ret_index), (ret_index))
{
	struct part other;

	if (!ret_index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_index = 0;
	if (part->is_whole)
		*ret_index = (unsigned int)node_place(part->index);
	else
		while (part_at(part->index, *ret_index, &other) &&
			(other.id != part->id || other.compute != part->compute))
			++*ret_index;
	return NVML_SUCCESS;
}

ENTRY_ANSWER(nvmlDeviceGetMinorNumber, unsigned int, (unsigned int)board_minor(node_board(), index))
ENTRY_ANSWER(nvmlDeviceGetModuleId, unsigned int, index + 1)
ENTRY_ANSWER(nvmlDeviceGetBoardId, unsigned int, pci_slot(index))
ENTRY_ANSWER(nvmlDeviceGetBrand, nvmlBrandType_t, node_board()->brand)
ENTRY_ANSWER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, node_board()->architecture)
ENTRY_ANSWER(
	nvmlDeviceGetNumGpuCores, unsigned int, node_board()->sm_count *node_board()->cores_per_sm)
ENTRY_ANSWER(nvmlDeviceGetMemoryBusWidth, unsigned int, node_board()->memory_bus_bits)
ENTRY_ANSWER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)

ENTRY_DEVICE(nvmlDeviceGetCudaComputeCapability, (int *major, int *minor), (major, minor))
{
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = node_board()->compute_major;
	*minor = node_board()->compute_minor;
	return NVML_SUCCESS;
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

ENTRY_DEVICE(nvmlDeviceGetPciInfo, (nvmlPciInfo_v1_t * pci), (pci))
{
	nvmlPciInfo_t full;

	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	full = pci_info(index);
	memcpy(pci, &full, sizeof(*pci));
	return NVML_SUCCESS;
}

/* The driver leaves `reserved` as it is (measured). */
ENTRY_DEVICE(nvmlDeviceGetPciInfo_v2, (nvmlPciInfo_v2_t * pci), (pci))
{
	nvmlPciInfo_t full;

	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	full = pci_info(index);
	memcpy(pci, &full, offsetof(nvmlPciInfo_v2_t, reserved));
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetPciInfo_v3, (nvmlPciInfo_t * pci), (pci))
{
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	*pci = pci_info(index);
	return NVML_SUCCESS;
}
