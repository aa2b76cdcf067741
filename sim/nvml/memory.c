/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a device. The driver's own reserve is part of NVML's total; the first interface
 * counts it as used, the second names it apart. Free is what all processes of the machine leave.
 */
#include "base/cleanup.h"
#include "sim/nvml/entry.h"

/* What an idle H200 shows as mapped by BAR1 (measured). */
#define BAR1_IDLE_BYTES UINT64_C(1703936)

struct memory {
	uint64_t total_bytes, reserved_bytes; /* the first without the second */
	uint64_t used_bytes, free_bytes;
};

/* Processes of a part have its instance's memory. */
static nvmlReturn_t read_memory(const struct part *part, struct memory *ret_memory)
{
	_cleanup_free_ struct machine_snapshot *snapshot = node_read_snapshot(NODE_WINDOW_NS);

	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	*ret_memory = (struct memory){
		.total_bytes = node_board()->total_bytes,
		.reserved_bytes = node_board()->reserved_bytes,
		.used_bytes = snapshot->device[part->index].used_bytes,
		.free_bytes = snapshot->device[part->index].free_bytes,
	};
	if (part->is_whole)
		return NVML_SUCCESS;
	*ret_memory = (struct memory){.total_bytes = part_total_bytes(part)};
	for (int i = 0; i < snapshot->process_count; i++)
		if (snapshot->process[i].device[part->index].has_part &&
			snapshot->process[i].device[part->index].instance == part->id)
			ret_memory->used_bytes +=
				snapshot->process[i].device[part->index].total_bytes;
	if (ret_memory->used_bytes < ret_memory->total_bytes)
		ret_memory->free_bytes = ret_memory->total_bytes - ret_memory->used_bytes;
	return NVML_SUCCESS;
}

ENTRY_PART(nvmlDeviceGetMemoryInfo, (nvmlMemory_t * memory), (memory))
{
	struct memory now;
	nvmlReturn_t result;

	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_memory(part, &now);
	if (result != NVML_SUCCESS)
		return result;
	*memory = (nvmlMemory_t){
		.total = now.total_bytes + now.reserved_bytes,
		.free = now.free_bytes,
		.used = now.reserved_bytes + now.used_bytes,
	};
	return NVML_SUCCESS;
}

/* A version word that it does not know is, to the driver, a function that it lacks (measured). */
ENTRY_PART(nvmlDeviceGetMemoryInfo_v2, (nvmlMemory_v2_t * memory), (memory))
{
	struct memory now;
	nvmlReturn_t result;

	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	result = read_memory(part, &now);
	if (result != NVML_SUCCESS)
		return result;
	*memory = (nvmlMemory_v2_t){
		.version = nvmlMemory_v2,
		.total = now.total_bytes + now.reserved_bytes,
		.reserved = now.reserved_bytes,
		.free = now.free_bytes,
		.used = now.used_bytes,
	};
	return NVML_SUCCESS;
}

/* A card whose BAR1 is as large as its memory maps all that is in use (measured on H200). */
ENTRY_DEVICE(nvmlDeviceGetBAR1MemoryInfo, (nvmlBAR1Memory_t * bar1), (bar1))
{
	const struct board *board;
	const struct part whole = {.index = index, .is_whole = true};
	struct memory now;
	uint64_t used_bytes;
	nvmlReturn_t result;

	if (!bar1)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_memory(&whole, &now);
	if (result != NVML_SUCCESS)
		return result;
	board = node_board();
	used_bytes = now.used_bytes;
	if (board->bar1_bytes < board->total_bytes + board->reserved_bytes)
		used_bytes = 0;
	used_bytes += BAR1_IDLE_BYTES;
	if (used_bytes > board->bar1_bytes)
		used_bytes = board->bar1_bytes;
	*bar1 = (nvmlBAR1Memory_t){
		.bar1Total = board->bar1_bytes,
		.bar1Free = board->bar1_bytes - used_bytes,
		.bar1Used = used_bytes,
	};
	return NVML_SUCCESS;
}
