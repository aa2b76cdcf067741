/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that may bring the device's own runtime with nothing reserved for it. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/load_turn.h"

#include "base/fault.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/charge.h"

/* A driver may compile in each. */
#define TURN_WAIT_NS UINT64_C(600000000000)

/* All of the runtime (H200). With sixteen times as much left it is reserved, and other processes of the slice are not waited for. */
#define RUNTIME_BYTES UINT64_C(0xca00000)
#define PLENTY_UNITS  ledger_units(16 * RUNTIME_BYTES)

/* Between two looks whether the process that is waited for is dead: of lock_rest(), some 10 ms. */
#define REAP_RESTS 200

static struct lock turns[STATE_ORDINALS];

static bool has_plenty(const struct device *d)
{
	/* relaxed: a limit of a moment ago is a limit */
	uint64_t most = atomic_load_explicit(&d->limit_units, memory_order_relaxed);

	return ledger_used_units(state.region.file, d->entry) + PLENTY_UNITS <= most;
}

static _Atomic uint64_t *word_of(const struct device *d)
{
	return &state.region.file->own.devices[d->entry].loading;
}

/* What the word is while this process has the slice's turn. */
static uint64_t own_word(void)
{
	return (uint64_t)atomic_load(&state.region.file->own.slots[state.slot].pid) << 32 |
	       (state.slot + 1);
}

static bool is_gone(uint64_t word)
{
	uint32_t slot = (uint32_t)word - 1;
	const struct region_slot *s = &state.region.file->own.slots[slot % REGION_SLOTS];

	return slot >= REGION_SLOTS || atomic_load(&s->state) != SLOT_LIVE ||
	       atomic_load(&s->pid) != word >> 32;
}

/* This process's own word is of a program before exec: of its threads one alone comes here. */
static bool take(_Atomic uint64_t *word, uint64_t own)
{
	uint64_t there = atomic_load(word);

	return there == own ||
	       ((!there || is_gone(there)) && atomic_compare_exchange_strong(word, &there, own));
}

static bool take_slices(struct device *d)
{
	struct patience patience = patience_begin(TURN_WAIT_NS);
	uint64_t own = own_word();

	for (unsigned i = 0; !take(word_of(d), own); i++) {
		if (patience_is_over(&patience))
			return false;
		if (i % REAP_RESTS == REAP_RESTS - 1)
			charge_reap(d);
		lock_rest(i);
	}
	return true;
}

bool load_turn_begin(struct device *device, struct load_turn *ret_turn)
{
	*ret_turn = (struct load_turn){.device = NULL};
	if (!patience_lock(&turns[device->ordinal], TURN_WAIT_NS))
		return false;
	ret_turn->device = device;
	ret_turn->bytes = has_plenty(device) ? RUNTIME_BYTES : 0;
	return ret_turn->bytes || load_turn_take_slices(ret_turn);
}

bool load_turn_take_slices(struct load_turn *turn)
{
	turn->bytes = 0;
	turn->is_slices = take_slices(turn->device);
	if (!turn->is_slices)
		load_turn_end(turn);
	FAULT("load: its turn");
	return turn->device;
}

void load_turn_end(struct load_turn *turn)
{
	uint64_t own;

	if (!turn->device)
		return;
	own = own_word();
	if (turn->is_slices)
		atomic_compare_exchange_strong(word_of(turn->device), &own, 0);
	lock_leave(&turns[turn->device->ordinal]);
	*turn = (struct load_turn){.device = NULL};
}

void load_turn_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		turns[i] = (struct lock)LOCK_INIT;
}
