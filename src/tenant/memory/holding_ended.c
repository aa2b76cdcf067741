/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a holding's charge, apart from the tables of what is held (holding.c): given back, left charged for good, or left to
 * the driver's figure for this process where nobody sees when the memory goes.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/holding_ended.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/chunk.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/reconcile.h"
#include "tenant/slice/parts.h"

static uint64_t bytes_of(const struct holding *h)
{
	return (uint64_t)h->units * REGION_UNIT_BYTES;
}

void holding_keep(const struct holding *holding)
{
	/* Its hold stays, and with it the charge. */
	if (holding->flags & HOLDING_SHARED)
		ipc_hide(holding->shared);
	else if (!(holding->flags & HOLDING_OBJECT))
		charge_hide(state_device(holding->device), bytes_of(holding),
			(enum charge_kind)holding->kind);
}

static void give_back(uint64_t key, const struct holding *h, enum holding_ended how)
{
	uint64_t bytes = bytes_of(h);
	bool is_known = true;

	if (h->flags & HOLDING_POOLED)
		return;
	if (h->flags & HOLDING_OBJECT) {
		parts_object_ended(key, h->serial);
		return;
	}
	if (h->flags & HOLDING_SHARED) {
		ipc_let_go(h->shared, h->flags & HOLDING_KEY_ENDS);
		bytes = 0;
	}
	if (h->flags & HOLDING_IN_CHUNK) {
		if (!chunk_leave(key, h, &is_known))
			return;
		bytes = CHUNK_BYTES;
	}
	FAULT("holding: given back in the driver");
	if (h->flags & HOLDING_OPEN_FOREIGN) {
		ipc_open_foreign(state_device(h->device), -(int64_t)bytes);
		/* What could not be told from it until now can be. */
		reconcile_look_again(state_device(h->device));
	}
	if (bytes && (how == HOLDING_ENDED_WHOLE || (how == HOLDING_ENDED_SEEN && is_known)))
		charge_give_back(state_device(h->device), bytes, (enum charge_kind)h->kind);
	else if (bytes)
		reconcile_doubt(state_device(h->device), bytes, (enum charge_kind)h->kind);
	if (h->flags & HOLDING_EVERYWHERE)
		everywhere_give_back(state_device(h->device), bytes);
}

void holding_give_back(uint64_t key, const struct holding *h)
{
	give_back(key, h, HOLDING_ENDED_SEEN);
}

void holding_give_back_whole(uint64_t key, const struct holding *h)
{
	give_back(key, h, HOLDING_ENDED_WHOLE);
}

/* Whether NVML's figure for this process has it, as this process's own. */
static bool is_shown(const struct holding *h)
{
	return !(h->flags & (HOLDING_POOLED | HOLDING_SHARED | HOLDING_OBJECT | HOLDING_FOREIGN |
				    HOLDING_OPEN_FOREIGN | HOLDING_EVERYWHERE |
				    HOLDING_HOST_FALLBACK | HOLDING_MAY_STAY)) &&
	       h->kind != CHARGE_MANAGED && h->kind != CHARGE_SHARED;
}

bool holding_leave_to_figure(uint64_t key, const struct holding *h)
{
	struct device *device = state_device(h->device);
	bool is_known;

	if (!is_shown(h))
		return false;
	if (!(h->flags & HOLDING_IN_CHUNK))
		return reconcile_leave_to_figure(device, bytes_of(h), (enum charge_kind)h->kind);
	if (!reconcile_has_figure(device))
		return false;
	/* The last of the others that leave may leave it behind. */
	chunk_doubt(key);
	if (chunk_leave(key, h, &is_known) &&
		!reconcile_leave_to_figure(device, CHUNK_BYTES, (enum charge_kind)h->kind))
		log_warn("memory stays counted until the process ends");
	return true;
}

void holding_end_last(uint64_t key, const struct holding *holding, enum holding_ended how)
{
	bool may_stay = holding->flags & HOLDING_MAY_STAY;

	if (!may_stay && !(holding->flags & HOLDING_END_UNSEEN)) {
		give_back(key, holding, how);
		return;
	}
	if (!may_stay && holding_leave_to_figure(key, holding))
		return;
	log_info("memory that something may keep stays counted until the process ends");
	holding_keep(holding);
}
