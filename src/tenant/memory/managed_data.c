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

/* key: a module or library; a: its number (table_number()). A holding's key is of that and of the context's life. */
static struct table numbers;

CUresult managed_data_begin(uint64_t bytes, struct charge *ret_charge)
{
	*ret_charge = (struct charge)CHARGE_NULL;
	return bytes ? charge_reserve_current(bytes, CHARGE_MANAGED, ret_charge) : CUDA_SUCCESS;
}

/* Given with the first that it has; 0 without memory. */
static uint64_t number_of(const void *owner)
{
	TABLE_SCOPE place = table_enter(&numbers, (uintptr_t)owner, true);

	if (place.entry && !place.entry->a)
		place.entry->a = table_number();
	return place.entry ? place.entry->a : 0;
}

bool managed_data_keep(const void *owner, struct charge *charge)
{
	uint64_t life = contexts_life_current(), number,
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
	number = number_of(owner);
	if (!number || !everywhere_charge(charge)) {
		charge_undo(charge);
		return false;
	}
	r = holding_put_or_refer(HOLDING_IMAGES, table_key_of(number, life),
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

/* An entry's life tells which key it has in it. */
static bool is_of_number(const struct table_entry *entry, uint64_t number)
{
	return entry->key == table_key_of(number, entry->holding.life);
}

uint64_t managed_data_unloading(const void *owner)
{
	struct table_entry entry;

	return table_take(&numbers, (uintptr_t)owner, &entry) == 0 ? entry.a : 0;
}

void managed_data_unloaded(const void *owner, uint64_t number, bool is_gone)
{
	if (!number)
		return;
	if (is_gone) {
		holding_end_all(HOLDING_IMAGES, is_of_number, number);
		return;
	}
	/* Unless it has another one by now. Its place was freed a moment ago, so this needs no memory unless others took it. */
	TABLE_SCOPE place = table_enter(&numbers, (uintptr_t)owner, true);
	if (place.entry && !place.entry->a)
		place.entry->a = number;
}

void managed_data_begin_owner(const void *owner)
{
	if (table_take(&numbers, (uintptr_t)owner, NULL) == 0)
		log_debug("a module or library has ended unseen");
}

void managed_data_reset_after_fork(void)
{
	table_forget(&numbers);
}
