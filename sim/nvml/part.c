/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of cards by handle. A handle is the address of a byte of a static table, as those of cards are (node.c):
 * its place says which part it is, and the machine whether that is there.
 */
#include "sim/nvml/part.h"

#include "sim/machine/visible.h"

static char instances[BOARD_DEVICES_MAX][MIG_INSTANCES_MAX];
static char computes[BOARD_DEVICES_MAX][MIG_INSTANCES_MAX][MIG_COMPUTES_MAX];

nvmlGpuInstance_t part_instance_handle(int index, int place)
{
	return (nvmlGpuInstance_t)(void *)&instances[index][place];
}

nvmlComputeInstance_t part_compute_handle(int index, int place, unsigned int compute)
{
	return (nvmlComputeInstance_t)(void *)&computes[index][place][compute];
}

/* The place of an address in a table of so many bytes, or -1. */
static long place_in(const void *address, const void *table, size_t size)
{
	uintptr_t offset = (uintptr_t)address - (uintptr_t)table;

	return offset < size ? (long)offset : -1;
}

bool part_find_instance(nvmlGpuInstance_t handle, int *ret_index, int *ret_place)
{
	long place = place_in(handle, instances, sizeof(instances));

	if (place < 0)
		return false;
	*ret_index = (int)(place / MIG_INSTANCES_MAX);
	*ret_place = (int)(place % MIG_INSTANCES_MAX);
	return node_check(node_handle(*ret_index)) == NVML_SUCCESS;
}

bool part_find_compute(
	nvmlComputeInstance_t handle, int *ret_index, int *ret_place, unsigned int *ret_compute)
{
	long place = place_in(handle, computes, sizeof(computes));

	if (place < 0)
		return false;
	*ret_compute = (unsigned int)(place % MIG_COMPUTES_MAX);
	*ret_place = (int)(place / MIG_COMPUTES_MAX % MIG_INSTANCES_MAX);
	*ret_index = (int)(place / MIG_COMPUTES_MAX / MIG_INSTANCES_MAX);
	return node_check(node_handle(*ret_index)) == NVML_SUCCESS;
}

/* Whether there is such a part of the card, and this process sees it. */
static bool fill(const struct mig_card *card, int index, int place, unsigned int compute,
	struct part *ret_part)
{
	const struct mig_instance *instance = &card->instance[place];

	*ret_part = (struct part){.index = index,
		.id = instance->id,
		.compute = compute,
		.slices = instance->compute[compute].slices,
		.profile = mig_profile_of_id(node_board(), instance->profile_id)};
	return instance->is_used && instance->compute[compute].is_used &&
	       visible_part(node_board(), index, instance->id, compute);
}

static nvmlReturn_t find(nvmlDevice_t device, struct part *ret_part)
{
	int index = node_index(device), place;
	struct mig_card card;
	unsigned int compute;
	nvmlReturn_t result;

	if (index >= 0) {
		*ret_part = (struct part){.index = index, .is_whole = true};
		return node_check(device);
	}
	if (!node_find_part(device, &index, &place, &compute))
		return NVML_ERROR_INVALID_ARGUMENT;
	result = node_check(node_handle(index));
	if (result != NVML_SUCCESS)
		return result;
	mig_read(node_machine(), index, &card);
	return fill(&card, index, place, compute, ret_part) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t part_enter(enum node_call call, nvmlDevice_t device, struct part *ret_part)
{
	nvmlReturn_t result = node_enter(call);

	return result == NVML_SUCCESS ? find(device, ret_part) : result;
}

nvmlDevice_t part_at(int index, unsigned int i, struct part *ret_part)
{
	struct mig_card card;

	mig_read(node_machine(), index, &card);
	for (int place = 0; place < MIG_INSTANCES_MAX; place++)
		for (unsigned int compute = 0; compute < MIG_COMPUTES_MAX; compute++)
			if (fill(&card, index, place, compute, ret_part) && !i--)
				return node_part_handle(index, place, compute);
	return NULL;
}

void part_uuid_text(const struct part *part, char ret_text[MACHINE_UUID_SIZE])
{
	uint8_t uuid[16];

	if (!part->is_whole) {
		mig_uuid_text(node_board(), part->index, part->id, part->compute, ret_text);
		return;
	}
	board_uuid(node_board(), part->index, uuid);
	machine_uuid_text(uuid, ret_text);
}
