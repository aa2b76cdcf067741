/* SPDX-License-Identifier: Apache-2.0 */
/* Which slot kept memory belongs to. */
#include "sim/machine/kept.h"

#include "sim/machine/state_file.h"

#define NO_OWNER (-1)

/* The slot that it belongs to, or NO_OWNER. */
static int find_owner(const struct layout *layout, const struct layout_kept *kept)
{
	if (kept_is_held(kept, kept->maker))
		return kept->maker;
	for (uint32_t i = 0; i < layout->slots_used; i++)
		if (kept_is_held(kept, i))
			return (int)i;
	return NO_OWNER;
}

struct kept_sum kept_of_slot(const struct layout *layout, int slot, int device, uint64_t *kinds)
{
	struct kept_sum sum = {0};

	for (uint32_t i = 0; i < layout->kept_used; i++) {
		const struct layout_kept *kept = &layout->kept[i];

		if (!kept->is_used || kept->device != device || find_owner(layout, kept) != slot)
			continue;
		sum.bytes += kept->bytes;
		if (kept->shown == MACHINE_SHOWN_HOLDER || kept->maker == slot)
			sum.shown_bytes += kept->bytes;
		if (kinds)
			kinds[kept->kind] += kept->bytes;
	}
	return sum;
}

uint64_t kept_of_nobody(const struct layout *layout, uint32_t tag, int device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < layout->kept_used; i++) {
		const struct layout_kept *kept = &layout->kept[i];

		if (kept->is_used && kept->device == device &&
			(tag == KEPT_ANY_TAG || kept->tag == tag) &&
			find_owner(layout, kept) == NO_OWNER)
			bytes += kept->bytes;
	}
	return bytes;
}

void kept_forget_slot(struct layout *layout, unsigned int slot)
{
	for (uint32_t i = 0; i < layout->kept_used; i++)
		kept_set_held(&layout->kept[i], slot, false);
}

void kept_sweep_place(struct layout *layout, uint32_t index, int fd)
{
	struct layout_kept *kept = &layout->kept[index];

	if (kept->is_used && find_owner(layout, kept) == NO_OWNER &&
		!(kept->has_descriptor &&
			state_file_is_byte_locked(fd, LAYOUT_KEPT_OFFSET + index)))
		kept->is_used = 0;
}

void kept_sweep(struct layout *layout, int fd)
{
	for (uint32_t i = 0; i < layout->kept_used; i++)
		kept_sweep_place(layout, i, fd);
}
