/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings whose memory other processes may open: a shared allocation (ipc.h) stands in the units' place. */
#include "tenant/memory/charge.h"
#include "tenant/memory/holding_tables.h"
#include "tenant/memory/ipc.h"

static bool has_shared(const struct holding *h, unsigned shared)
{
	return h->flags & HOLDING_SHARED && h->shared == shared;
}

struct shared_search {
	unsigned shared;
	uint64_t key; /* 0: none was found */
};

static void look_for_shared(const struct table_entry *entry, void *argument)
{
	struct shared_search *s = argument;

	if (has_shared(&entry->holding, s->shared))
		s->key = entry->key;
}

int holding_pin_shared(
	enum holding_table in, unsigned shared, uint64_t *ret_key, struct holding *ret_holding)
{
	struct shared_search search = {.shared = shared};
	struct holding h;

	table_visit(&holding_tables[in], look_for_shared, &search);
	if (!search.key || holding_pin(in, search.key, &h) != 0)
		return HOLDING_E_ABSENT;
	/* Another thread may have ended it since it was seen. */
	if (!has_shared(&h, shared)) {
		holding_unpin(in, search.key, h.serial);
		return HOLDING_E_ABSENT;
	}
	*ret_key = search.key;
	*ret_holding = h;
	return 0;
}

/* Of a chunk that others have a part in one more is charged, so that nobody's part is uncharged. */
static bool charge_for_sharing(const struct holding *h, struct ipc_memory *memory)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;

	memory->device = state_device(h->device);
	memory->kind = (enum charge_kind)h->kind;
	memory->bytes = (uint64_t)h->units * REGION_UNIT_BYTES;
	if (!(h->flags & HOLDING_IN_CHUNK))
		return true;
	if (charge_reserve(memory->device, CHUNK_BYTES, memory->kind, &charge) != CUDA_SUCCESS)
		return false;
	memory->bytes = charge_take(&charge);
	memory->is_beyond = true;
	return true;
}

static bool become_shared(enum holding_table in, uint64_t key, const struct holding *was,
	unsigned flags, unsigned shared)
{
	TABLE_SCOPE place = holding_enter(in, key, false);

	if (!place.entry || place.entry->holding.serial != was->serial)
		return false;
	place.entry->holding.shared = shared;
	place.entry->holding.flags |= (uint16_t)(HOLDING_SHARED | flags);
	return true;
}

bool holding_share(enum holding_table in, uint64_t key, struct ipc_memory *memory, unsigned flags,
	unsigned *ret_shared)
{
	struct holding h;
	LOCK_SCOPE(&holding_share_lock);

	if (holding_get(in, key, &h) != 0 ||
		h.flags & (HOLDING_POOLED | HOLDING_FOREIGN | HOLDING_OBJECT | HOLDING_NOBODYS))
		return false;
	*ret_shared = h.shared;
	if (h.flags & HOLDING_SHARED)
		return true;
	if (!charge_for_sharing(&h, memory))
		return false;
	if (!ipc_make(memory, ret_shared)) {
		if (h.flags & HOLDING_IN_CHUNK)
			charge_give_back(memory->device, memory->bytes, memory->kind);
		return false;
	}
	if (become_shared(in, key, &h, flags, *ret_shared))
		return true;
	/* It ended meanwhile, and that gives back what the shared allocation has now, unless it was a chunk's part. */
	if (!(h.flags & HOLDING_IN_CHUNK))
		charge_anyway(memory->device, memory->bytes, memory->kind);
	ipc_let_go(*ret_shared, true);
	return false;
}
