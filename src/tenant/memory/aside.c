/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings that were replaced in their table, and may be there still. */
#include "tenant/memory/aside.h"

#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/table.h"

static struct table asides;

bool aside_is_due(const struct holding *gone, uint64_t since, unsigned flags)
{
	return !(gone->flags & HOLDING_POOLED) && !charge_is_sure(since) &&
	       !(gone->flags & flags & HOLDING_IN_CHUNK);
}

bool aside_put(uint64_t key, const struct holding *gone)
{
	struct table_place place;
	bool is_put;

	if (!gone->life)
		return false;
	place = table_enter(&asides, key, true);
	is_put = place.entry && !place.entry->holding.serial;
	if (is_put)
		place.entry->holding = *gone;
	table_leave(&place);
	return is_put;
}

static bool is_of_life(const struct table_entry *entry, uint64_t life)
{
	return entry->holding.life == life;
}

int aside_take_next(uint64_t life, struct table_cursor *cursor, struct table_entry *ret_entry)
{
	return table_take_next(&asides, is_of_life, life, cursor, ret_entry);
}

void aside_reset_after_fork(void)
{
	table_forget(&asides);
}
