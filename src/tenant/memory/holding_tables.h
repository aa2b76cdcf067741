/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of holdings, for the files that holding.h is made of. */
#pragma once

#include "base/lock.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/table.h"

extern struct table holding_tables[HOLDING_TABLES];

/* The place of a key, with its lock, until table_leave(). */
static inline struct table_place holding_enter(enum holding_table in, uint64_t key, bool may_add)
{
	return table_enter(&holding_tables[in], key, may_add);
}

/* One thread at a time makes shared allocations of holdings. */
extern struct lock holding_share_lock;
