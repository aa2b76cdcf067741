/* SPDX-License-Identifier: Apache-2.0 */
/* Cards that are cut into instances. */
#include "sim/machine/mig.h"

#include <errno.h>
#include <string.h>

#include "sim/machine/reap.h"
#include "sim/machine/state_file.h"

static struct mig_card *card_of(struct machine *machine, int device)
{
	return &machine->layout->mig[device];
}

/*
 * Under the lock, with the dead reaped: whether a live process uses the part of the card, all parts of the
 * instance where compute < 0, or the card at all where id < 0.
 */
static bool is_busy(struct machine *machine, int device, int id, int compute)
{
	reap_dead(machine);
	for (uint32_t i = 0; i < machine->layout->slots_used; i++) {
		const struct layout_slot_device *of = &machine->layout->slot[i].device[device];
		uint32_t part = of->part;

		if (!layout_is_used(&machine->layout->slot[i]) || (!part && !of->contexts))
			continue;
		if (id < 0 || (part && (int)((part - 1) >> 8) == id &&
				      (compute < 0 || (int)((part - 1) & 0xff) == compute)))
			return true;
	}
	return false;
}

static bool has_instance(const struct mig_card *card)
{
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		if (card->instance[i].is_used)
			return true;
	return false;
}

int mig_set_mode(struct machine *machine, int device, bool is_enabled)
{
	struct mig_card *card = card_of(machine, device);
	MACHINE_SCOPE(machine);

	card->is_pending = is_enabled;
	if (card->is_enabled == card->is_pending)
		return 0;
	if (has_instance(card) || is_busy(machine, device, -1, -1))
		return MIG_E_BUSY;
	card->is_enabled = is_enabled;
	return 0;
}

void mig_read(struct machine *machine, int device, struct mig_card *ret_card)
{
	MACHINE_SCOPE(machine);
	*ret_card = *card_of(machine, device);
}

int mig_find(const struct mig_card *card, unsigned int id)
{
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		if (card->instance[i].is_used && card->instance[i].id == id)
			return i;
	return -1;
}

static unsigned int bits(unsigned int start, unsigned int size)
{
	return ((1u << size) - 1) << start;
}

/* Slices of memory that instances have, and of processors their number. */
static unsigned int taken_memory(
	const struct board *board, const struct mig_card *card, unsigned int *ret_slices)
{
	unsigned int taken = 0;

	*ret_slices = 0;
	for (int i = 0; i < MIG_INSTANCES_MAX; i++) {
		const struct mig_instance *instance = &card->instance[i];
		const struct mig_profile *profile = mig_profile_of_id(board, instance->profile_id);

		if (!instance->is_used || !profile)
			continue;
		taken |= bits(instance->start, profile->memory_slices);
		*ret_slices += profile->slices;
	}
	return taken;
}

static bool fits(const struct mig_profile *profile, unsigned int start, unsigned int taken)
{
	return profile->starts >> start & 1 && !(taken & bits(start, profile->memory_slices));
}

/* Media engines are there once: so is the profile. */
static bool is_exhausted(const struct mig_card *card, const struct mig_profile *profile)
{
	unsigned int count = 0;

	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		count += card->instance[i].is_used && card->instance[i].profile_id == profile->id;
	return count >= mig_profile_most(profile);
}

unsigned int mig_room(
	const struct board *board, const struct mig_card *card, const struct mig_profile *profile)
{
	unsigned int slices, taken = taken_memory(board, card, &slices), room = 0;

	if (is_exhausted(card, profile))
		return 0;
	for (unsigned int start = 0; start < MIG_MEMORY_SLICES; start++) {
		if (!fits(profile, start, taken) ||
			slices + profile->slices > MIG_PROCESSOR_SLICES ||
			room == mig_profile_most(profile))
			continue;
		taken |= bits(start, profile->memory_slices);
		slices += profile->slices;
		room++;
	}
	return room;
}

/* The driver counts the places as a tree, the upper half first: 0 the whole, 1 and 2 its halves, and so on [d]. */
static unsigned int id_of(unsigned int start, unsigned int size)
{
	unsigned int parts = MIG_MEMORY_SLICES / size, place = start / size;

	return parts - 1 + (place + parts / 2) % parts;
}

int mig_create(struct machine *machine, int device, const struct mig_profile *profile, int start,
	unsigned int *ret_id)
{
	const struct board *board = machine_board(machine);
	struct mig_card *card = card_of(machine, device);
	unsigned int slices, taken;
	int place = 0;
	MACHINE_SCOPE(machine);

	if (!card->is_enabled)
		return MIG_E_DISABLED;
	taken = taken_memory(board, card, &slices);
	for (unsigned int i = 0; i < MIG_MEMORY_SLICES && start < 0; i++)
		if (fits(profile, i, taken))
			start = (int)i;
	if (start < 0 || !fits(profile, (unsigned int)start, taken) ||
		slices + profile->slices > MIG_PROCESSOR_SLICES || is_exhausted(card, profile))
		return MIG_E_FULL;
	while (card->instance[place].is_used)
		place++;
	card->instance[place] =
		(struct mig_instance){.id = id_of((unsigned int)start, profile->memory_slices),
			.profile_id = profile->id,
			.start = (uint32_t)start};
	layout_fence();
	card->instance[place].is_used = 1;
	*ret_id = card->instance[place].id;
	return 0;
}

int mig_destroy(struct machine *machine, int device, unsigned int id)
{
	struct mig_card *card = card_of(machine, device);
	int place;
	MACHINE_SCOPE(machine);

	place = mig_find(card, id);
	if (place < 0)
		return -ENOENT;
	for (int i = 0; i < MIG_COMPUTES_MAX; i++)
		if (card->instance[place].compute[i].is_used)
			return MIG_E_BUSY;
	if (is_busy(machine, device, (int)id, -1))
		return MIG_E_BUSY;
	card->instance[place].is_used = 0;
	return 0;
}

static unsigned int taken_processors(const struct mig_instance *instance)
{
	unsigned int taken = 0;

	for (int i = 0; i < MIG_COMPUTES_MAX; i++)
		if (instance->compute[i].is_used)
			taken |= bits(instance->compute[i].start, instance->compute[i].slices);
	return taken;
}

static bool compute_fits(const struct board *board, const struct mig_instance *instance,
	unsigned int start, unsigned int slices, unsigned int taken)
{
	const struct mig_profile *profile = mig_profile_of_id(board, instance->profile_id);

	return slices && start % slices == 0 && start + slices <= profile->slices &&
	       !(taken & bits(start, slices));
}

unsigned int mig_compute_room(
	const struct board *board, const struct mig_instance *instance, unsigned int slices)
{
	unsigned int taken = taken_processors(instance), room = 0;

	for (unsigned int start = 0; start < MIG_PROCESSOR_SLICES; start++)
		if (compute_fits(board, instance, start, slices, taken)) {
			taken |= bits(start, slices);
			room++;
		}
	return room;
}

int mig_create_compute(struct machine *machine, int device, unsigned int id, unsigned int slices,
	int start, unsigned int *ret_compute)
{
	const struct board *board = machine_board(machine);
	struct mig_card *card = card_of(machine, device);
	struct mig_instance *instance;
	unsigned int taken, free_place = 0;
	int place;
	MACHINE_SCOPE(machine);

	place = mig_find(card, id);
	if (place < 0)
		return -ENOENT;
	instance = &card->instance[place];
	taken = taken_processors(instance);
	for (unsigned int i = 0; i < MIG_PROCESSOR_SLICES && start < 0; i++)
		if (compute_fits(board, instance, i, slices, taken))
			start = (int)i;
	if (start < 0 || !compute_fits(board, instance, (unsigned int)start, slices, taken))
		return MIG_E_FULL;
	while (instance->compute[free_place].is_used)
		free_place++;
	instance->compute[free_place] =
		(struct mig_compute){.start = (uint32_t)start, .slices = slices};
	layout_fence();
	instance->compute[free_place].is_used = 1;
	*ret_compute = free_place;
	return 0;
}

int mig_destroy_compute(struct machine *machine, int device, unsigned int id, unsigned int compute)
{
	struct mig_card *card = card_of(machine, device);
	int place;
	MACHINE_SCOPE(machine);

	place = mig_find(card, id);
	if (place < 0 || compute >= MIG_COMPUTES_MAX ||
		!card->instance[place].compute[compute].is_used)
		return -ENOENT;
	if (is_busy(machine, device, (int)id, (int)compute))
		return MIG_E_BUSY;
	card->instance[place].compute[compute].is_used = 0;
	return 0;
}

void mig_use(struct machine *machine, int device, unsigned int id, unsigned int compute)
{
	struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine)
		return;
	MACHINE_SCOPE(machine);
	mine->device[device].part = mig_part(id, compute);
}
