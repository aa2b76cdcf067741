/* SPDX-License-Identifier: Apache-2.0 */
/* Managed variables of modules and libraries: the holdings of HOLDING_IMAGES. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/managed_data.h"

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/everywhere.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/table.h"

static uint64_t key_of(uint64_t owner, uint64_t life)
{
	uint64_t key = hash_u64(hash_u64(owner) + life);

	return key ? key : 1;
}

CUresult managed_data_begin(uint64_t bytes, struct charge *ret_charge)
{
	*ret_charge = (struct charge)CHARGE_NULL;
	return bytes ? charge_reserve_current(bytes, CHARGE_MANAGED, ret_charge) : CUDA_SUCCESS;
}

bool managed_data_keep(const void *owner, struct charge *charge)
{
	uint64_t life = contexts_life_current(),
		 bytes = (uint64_t)charge->units * REGION_UNIT_BYTES;
	bool is_new = false;
	int r;

	if (!charge->device)
		return true;
	if (!current_is_same(charge->current)) {
		log_warn("another context was made current while an image was loaded, so it is "
			 "refused");
		return false;
	}
	if (!everywhere_charge(charge)) {
		charge_undo(charge);
		return false;
	}
	r = holding_put_or_refer(HOLDING_IMAGES, key_of((uintptr_t)owner, life),
		holding_of(charge, life, HOLDING_EVERYWHERE), charge->since, &is_new, NULL);
	if (r != 0)
		log_error("no memory for our own tables, so an image is refused");
	FAULT("managed data: entered");
	if (is_new) {
		charge_take(charge);
	} else {
		everywhere_give_back(charge->device, bytes);
		charge_undo(charge);
	}
	return r == 0;
}

/* An entry's life tells which key the owner has in it. */
static bool is_of_owner(const struct table_entry *entry, uint64_t owner)
{
	return entry->key == key_of(owner, entry->holding.life);
}

void managed_data_unloaded(const void *owner)
{
	holding_end_all(HOLDING_IMAGES, is_of_owner, (uintptr_t)owner);
}
