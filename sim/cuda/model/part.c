/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a card as the one device of a process. What the driver says of its board is then said of the part: its
 * processors, its memory, its name.
 */
#include "sim/cuda/model/part.h"

#include <stdio.h>
#include <string.h>

#include "sim/machine/mig.h"
#include "sim/machine/visible.h"

static struct {
	bool is_used;
	int index;
	unsigned int id, compute;
	struct board board;
} part;

/* As the name of a device says it: "NVIDIA H200 MIG 1c.3g.71gb". */
static void describe(const struct mig_profile *profile, unsigned int slices)
{
	struct board *board = &part.board;
	size_t used = strlen(driver.board->device_name);
	char *end = board->device_name + used;

	memcpy(board, driver.board, sizeof(*board));
	if (slices == profile->slices)
		snprintf(end, sizeof(board->device_name) - used, " MIG %s", profile->name);
	else
		snprintf(end, sizeof(board->device_name) - used, " MIG %uc.%s", slices,
			profile->name);
	board->total_bytes = (uint64_t)profile->memory_mib << 20;
	board->sm_count = (int)mig_sm_count(profile, slices);
	board->copy_engine_count = (int)profile->copy_engines;
	board->nvlink_count = 0;
	board->pcie_has_peers = 0;
}

static bool is_named(const char *list, int index, unsigned int id, unsigned int compute)
{
	char text[MACHINE_UUID_SIZE];

	if (!list || strncmp(list, "MIG-", 4) != 0)
		return true;
	mig_uuid_text(driver.board, index, id, compute, text);
	return !strncmp(list, text, strlen(text)) &&
	       (!list[strlen(text)] || list[strlen(text)] == ',');
}

/* Takes the first part of the card that the process may have; false: there is none. */
static bool take(const char *list, int index, const struct mig_card *card)
{
	for (int place = 0; place < MIG_INSTANCES_MAX; place++)
		for (unsigned int compute = 0; compute < MIG_COMPUTES_MAX; compute++) {
			const struct mig_instance *instance = &card->instance[place];

			if (!instance->is_used || !instance->compute[compute].is_used ||
				!visible_part(driver.board, index, instance->id, compute) ||
				!is_named(list, index, instance->id, compute))
				continue;
			part.is_used = true;
			part.index = index;
			part.id = instance->id;
			part.compute = compute;
			describe(mig_profile_of_id(driver.board, instance->profile_id),
				instance->compute[compute].slices);
			return true;
		}
	return false;
}

int part_choose(const char *list, int indices[MACHINE_DEVICES_MAX], int count)
{
	struct mig_card card;
	int whole = 0;

	if (list && !strncmp(list, "MIG-", 4))
		count = visible_cards(driver.board, indices);
	for (int i = 0; i < count; i++) {
		mig_read(driver.machine, indices[i], &card);
		if (!card.is_enabled) {
			indices[whole++] = indices[i];
		} else if (take(list, indices[i], &card)) {
			indices[0] = indices[i];
			driver.board = &part.board;
			return 1;
		}
	}
	return list && !strncmp(list, "MIG-", 4) ? 0 : whole;
}

void part_use(void)
{
	if (part.is_used)
		mig_use(driver.machine, part.index, part.id, part.compute);
}

void part_uuid(const struct device *device, uint8_t ret_uuid[16])
{
	if (part.is_used)
		mig_uuid(driver.board, part.index, part.id, part.compute, ret_uuid);
	else
		board_uuid(driver.board, device->index, ret_uuid);
}
