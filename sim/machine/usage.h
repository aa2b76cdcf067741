/* SPDX-License-Identifier: Apache-2.0 */
/* What processes use of a device. All of it is called under the lock of the file. */
#pragma once

#include "sim/machine/state_file.h"

/* Whether what the slot holds is taken from the devices. */
static inline bool usage_is_counted(const struct layout_slot *slot)
{
	return layout_is_used(slot) && layout_stage(slot) != MACHINE_CHECKPOINTED;
}

struct usage {
	uint64_t held_bytes;  /* all kinds but MACHINE_INIT and MACHINE_CONTEXT_EXTRA */
	uint64_t total_bytes; /* all kinds */
	int processes;
};

/* What a slot holds by itself on a device. */
struct usage usage_of_slot(const struct layout_slot *slot, int device);

/* What the counted slots of a tag hold with their kept memory, and with that of nobody. */
struct usage usage_of_tag(const struct layout *layout, uint32_t tag, int device);

/* Whether the device, or this part of it, has room for so much more than all counted slots and kept memory take. */
bool usage_has_room(const struct layout *layout, int device, uint32_t part, uint64_t more_bytes);

/* What is left of it. */
uint64_t usage_free_bytes(const struct layout *layout, int device, uint32_t part);

/* Whether the calling process may take more, by its own limit alone. */
bool usage_is_within_limit(const struct machine *machine, int device, uint64_t more_bytes);

/* Brings the peaks of a slot's tag up to date after a growth. */
void usage_note_peak(struct machine *machine, const struct layout_slot *slot, int device);
