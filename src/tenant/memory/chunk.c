/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a part in which chunk. */
#include "tenant/memory/chunk.h"

#include <errno.h>

#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/table.h"

/* key: address / CHUNK_BYTES; a: tenants; b: charge_unnamed_since() before the first came */
static struct table chunks;

/* More than there can be under way, so that it is never known what lies in it. */
#define IN_DOUBT UINT64_MAX

int chunk_enter(uint64_t pointer, uint64_t unnamed, bool *ret_is_first)
{
	TABLE_SCOPE place = table_enter(&chunks, pointer / CHUNK_BYTES, true);

	if (!place.entry)
		return -ENOMEM;
	*ret_is_first = ++place.entry->a == 1;
	/* Of several the first to come here need not have been the first in the chunk. */
	if (*ret_is_first)
		place.entry->b = unnamed;
	else if (place.entry->b != unnamed)
		place.entry->b = IN_DOUBT;
	return 0;
}

/* Nothing can lie in it that nobody names: nothing of modules lies in managed memory, and NVML shows none. */
static bool is_all_known(const struct table_entry *chunk, const struct holding *h)
{
	return h->kind == CHARGE_MANAGED ||
	       ((uint32_t)chunk->b == 0 &&
		       chunk->b == charge_unnamed_since(state_device(h->device)));
}

bool chunk_is_in_doubt(uint64_t pointer, const struct holding *h)
{
	if (!(h->flags & HOLDING_IN_CHUNK))
		return false;
	TABLE_SCOPE place = table_enter(&chunks, pointer / CHUNK_BYTES, false);

	return place.entry && place.entry->a == 1 && !is_all_known(place.entry, h);
}

void chunk_doubt(uint64_t pointer)
{
	TABLE_SCOPE place = table_enter(&chunks, pointer / CHUNK_BYTES, false);

	if (place.entry)
		place.entry->b = IN_DOUBT;
}

bool chunk_leave(uint64_t pointer, const struct holding *h, bool *ret_is_known)
{
	TABLE_SCOPE place = table_enter(&chunks, pointer / CHUNK_BYTES, false);

	if (!place.entry || --place.entry->a > 0)
		return false;
	*ret_is_known = is_all_known(place.entry, h);
	table_remove(&place);
	return true;
}

void chunk_reset_after_fork(void)
{
	table_forget(&chunks);
}
