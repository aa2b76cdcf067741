/* SPDX-License-Identifier: Apache-2.0 */
/* What processes use of a device. */
#include "sim/machine/usage.h"

#include "sim/machine/kept.h"
#include "sim/machine/reap.h"

/*
 * A device's use is the sum over the slots of its live processes, made under the lock each time a
 * process wants more. No total is kept, so a process killed anywhere cannot leave a wrong one: its
 * slot counts until it is reaped, and not after.
 */

struct usage usage_of_slot(const struct layout_slot *slot, int device)
{
	const uint64_t *bytes = slot->device[device].bytes;
	struct usage usage = {.processes = 1};

	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		usage.total_bytes += bytes[kind];
	usage.held_bytes = usage.total_bytes - bytes[MACHINE_INIT] - bytes[MACHINE_CONTEXT_EXTRA];
	return usage;
}

struct usage usage_of_tag(const struct layout *layout, uint32_t tag, int device)
{
	uint64_t kept_bytes = kept_of_nobody(layout, tag, device);
	struct usage sum = {.held_bytes = kept_bytes, .total_bytes = kept_bytes};

	for (uint32_t i = 0; i < layout->slots_used; i++) {
		const struct layout_slot *slot = &layout->slot[i];
		struct usage usage;

		if (!usage_is_counted(slot) || slot->tag != tag)
			continue;
		usage = usage_of_slot(slot, device);
		kept_bytes = kept_of_slot(layout, (int)i, device, NULL).bytes;
		sum.held_bytes += usage.held_bytes + kept_bytes;
		sum.total_bytes += usage.total_bytes + kept_bytes;
		sum.processes++;
	}
	return sum;
}

/* Parts of one instance have its memory together; 0 is the whole card. */
static bool is_same_memory(uint32_t part, uint32_t other)
{
	return !part || (other && (part - 1) >> 8 == (other - 1) >> 8);
}

static uint64_t used_bytes(const struct layout *layout, int device, uint32_t part)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < layout->slots_used; i++)
		if (usage_is_counted(&layout->slot[i]) &&
			is_same_memory(part, layout->slot[i].device[device].part))
			used += usage_of_slot(&layout->slot[i], device).total_bytes;
	for (uint32_t i = 0; i < layout->kept_used; i++)
		if (layout->kept[i].is_used && layout->kept[i].device == device &&
			is_same_memory(part, layout->kept[i].part))
			used += layout->kept[i].bytes;
	return used;
}

static uint64_t total_bytes(const struct layout *layout, int device, uint32_t part)
{
	const struct mig_card *card = &layout->mig[device];
	int place = part ? mig_find(card, (part - 1) >> 8) : -1;

	if (!part)
		return layout->board.board.total_bytes;
	return place < 0 ? 0
			 : (uint64_t)mig_profile_of_id(
				   &layout->board.board, card->instance[place].profile_id)
					   ->memory_mib
				   << 20;
}

uint64_t usage_free_bytes(const struct layout *layout, int device, uint32_t part)
{
	uint64_t used = used_bytes(layout, device, part), total = total_bytes(layout, device, part);

	return used < total ? total - used : 0;
}

bool usage_has_room(const struct layout *layout, int device, uint32_t part, uint64_t more_bytes)
{
	uint64_t used = used_bytes(layout, device, part), total = total_bytes(layout, device, part);

	return used <= total && more_bytes <= total - used;
}

/* The process's own, and the kept memory that belongs to it; managed memory can go. */
bool usage_is_within_limit(const struct machine *machine, int device, uint64_t more_bytes)
{
	const struct layout_slot *slot = state_file_own_slot(machine);
	uint64_t held, limit = slot->device[device].limit_bytes;

	if (limit == 0)
		return true;
	held = usage_of_slot(slot, device).held_bytes -
	       slot->device[device].bytes[MACHINE_MANAGED] +
	       kept_of_slot(machine->layout, machine->slot, device, NULL).bytes;
	return held <= limit && more_bytes <= limit - held;
}

/*
 * Before a new peak is believed the dead are reaped, for what a dead process held is nobody's any
 * more.
 */
void usage_note_peak(struct machine *machine, const struct layout_slot *slot, int device)
{
	struct layout *layout = machine->layout;
	struct layout_tag *tag = &layout->tag[slot->tag];
	struct usage usage = usage_of_tag(layout, slot->tag, device);

	if (usage.held_bytes <= tag->peak_held_bytes[device] &&
		usage.total_bytes <= tag->peak_total_bytes[device])
		return;
	if (usage.processes > 1 || layout->kept_used > 0) {
		reap_dead(machine);
		usage = usage_of_tag(layout, slot->tag, device);
	}
	if (usage.held_bytes > tag->peak_held_bytes[device])
		tag->peak_held_bytes[device] = usage.held_bytes;
	if (usage.total_bytes > tag->peak_total_bytes[device])
		tag->peak_total_bytes[device] = usage.total_bytes;
}
