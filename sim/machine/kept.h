/* SPDX-License-Identifier: Apache-2.0 */
/* Which slot kept memory (machine.h) belongs to. All of it is called under the lock of the file. */
#pragma once

#include "sim/machine/layout.h"

/* The sums of kept_sum(). */
struct kept_sum {
	uint64_t bytes;
	uint64_t shown_bytes; /* as NVML shows it */
};

#define KEPT_ANY_TAG UINT32_MAX

/* What belongs to a slot on a device; by kind it is added to `kinds`, which may be NULL. */
struct kept_sum kept_of_slot(const struct layout *layout, int slot, int device, uint64_t *kinds);

/* What belongs to no slot: of the makers of one tag, or of all. */
uint64_t kept_of_nobody(const struct layout *layout, uint32_t tag, int device);

/* The slot holds nothing any more. */
void kept_forget_slot(struct layout *layout, unsigned int slot);

/*
 * Frees what neither a slot holds nor a descriptor keeps: all of it, or one place, for each place that only a
 * descriptor may keep costs a look at all locks of the file. `fd` is of the file.
 */
void kept_sweep(struct layout *layout, int fd);
void kept_sweep_place(struct layout *layout, uint32_t index, int fd);

static inline bool kept_is_held(const struct layout_kept *kept, unsigned int slot)
{
	return kept->holders[slot / 64] >> (slot % 64) & 1;
}

static inline void kept_set_held(struct layout_kept *kept, unsigned int slot, bool is_held)
{
	uint64_t bit = UINT64_C(1) << (slot % 64);

	if (is_held)
		kept->holders[slot / 64] |= bit;
	else
		kept->holders[slot / 64] &= ~bit;
}
