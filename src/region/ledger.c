/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger.
 *
 * A device has one word for the whole slice:   total   = units in use << 32 | number of changes
 * and each slot one word for its own part:     held    = units held   << 32 | units on their way
 *
 * A charge of n is three atomic steps, a give-back the same in the other direction:
 *	1  held.on_their_way += n
 *	2  total.in_use      += n, by compare-and-exchange, only if the limit allows it
 *	3  held.held += n, held.on_their_way -= n, in one addition
 *
 * Invariant: total.in_use = sum of held.held + that part of the on_their_way which has passed step
 * 2 (charge) or not yet passed it (give-back). So the limit is decided on one word, and no lock
 * is held: a process that is killed or stopped between two steps delays nobody.
 *
 * A killed process leaves its slot word behind. What it held is exact and is given back by the same
 * three steps (ledger_reap()). Only what was on its way is unknown: step 2 was done, or not. Then
 * total may be too high by it, never too low, the device's doubts are raised, and ledger_settle()
 * finds the sum without stopping anybody: it reads total, then every slot word, and writes the
 * sum with a compare-and-exchange that succeeds only if total has not changed meanwhile (it
 * counts its changes, so equal means untouched). If every slot had nothing on its way when it was
 * read, the sum is what living processes have in total: a slot's part of total changes only by a
 * change of total, and there was none.
 *
 * What several processes hold together is in a shared allocation's word instead of a slot's. To move n there is
 *	1  held.held -= n, held.on_their_way += n, in one addition
 *	2  total's number of changes += 1
 *	3  shared allocation = n, or n more
 *	4  held.on_their_way -= n
 * and to have n of it back in the slot
 *	1  held.on_their_way += n
 *	2  total's number of changes += 1
 *	3  shared allocation -= n
 *	4  held.held += n, held.on_their_way -= n, in one addition
 * and to give it back
 *	1  held.on_their_way += n
 *	2  total's number of changes += 1
 *	3  shared allocation = 0
 *	4  total.in_use -= n
 *	5  held.on_their_way -= n
 * ledger_settle() reads total, then the slots, then the shared allocations. If it saw the slot before step 1 and the
 * shared allocation after step 3, then step 2 was in between, and its exchange fails; between 1 and the last it
 * sees what is on its way, and tries again. A death anywhere leaves units on their way, which is
 * doubt, and the sum that settles it counts the shared allocation as it stands. tests/model/shared.pml is this as
 * a model.
 *
 * The same sum tells a total that was tampered with (ledger_audit()): while total stands still, what
 * slots and shared allocations hold is never more than it says, and exactly that where nothing is on its way.
 *
 * All accesses are sequentially consistent: the argument orders steps on different words, and on
 * the processors that we know a read-modify-write costs the same anyway.
 *
 * Rejected: a lock (a stopped holder stops the slice); summing the slots at each charge (two that
 * overlap both see too much, or both too little); a journal of operations (more words to keep
 * in step than the two here).
 */
#include "region/ledger.h"

#include <errno.h>

#include "base/fault.h"

#define SETTLE_ATTEMPTS 1000
#define AUDIT_ATTEMPTS	10

static uint64_t held_word(uint64_t units)
{
	return units << 32;
}

/* Step 2 of a give-back. A total that is too small (a file that was tampered with) becomes 0. */
static void lower(_Atomic uint64_t *total, uint64_t units)
{
	uint64_t old = atomic_load(total), used;

	do {
		used = old >> 32;
		used = used > units ? used - units : 0;
	} while (!atomic_compare_exchange_weak(total, &old, used << 32 | (uint32_t)(old + 1)));
}

void ledger_count_change(struct region_file *file, unsigned device)
{
	lower(&file->own.devices[device].total, 0);
}

static int raise_within(_Atomic uint64_t *total, uint64_t units, uint64_t limit_units)
{
	uint64_t old = atomic_load(total), used;

	do {
		used = (old >> 32) + units;
		if (used > limit_units)
			return LEDGER_E_FULL;
	} while (!atomic_compare_exchange_weak(total, &old, used << 32 | (uint32_t)(old + 1)));
	return 0;
}

int ledger_charge(struct region_file *file, unsigned slot, unsigned device, uint64_t units,
	uint32_t limit_units)
{
	_Atomic uint64_t *mine = &file->own.slots[slot].held[device];

	if (units > LEDGER_MAX_UNITS || units > limit_units)
		return LEDGER_E_FULL;
	atomic_fetch_add(mine, units);
	FAULT("charge: on its way");
	if (raise_within(&file->own.devices[device].total, units, limit_units) != 0) {
		atomic_fetch_sub(mine, units);
		return LEDGER_E_FULL;
	}
	FAULT("charge: in total");
	atomic_fetch_add(mine, held_word(units) - units);
	FAULT("charge: held");
	return 0;
}

void ledger_charge_anyway(struct region_file *file, unsigned slot, unsigned device, uint64_t units)
{
	if (units > LEDGER_MAX_UNITS)
		units = LEDGER_MAX_UNITS;
	/* With no limit only an absurd amount is refused, and that was excluded just now. */
	if (ledger_charge(file, slot, device, units, LEDGER_NO_LIMIT) != 0)
		return;
}

void ledger_uncharge(struct region_file *file, unsigned slot, unsigned device, uint64_t units)
{
	_Atomic uint64_t *mine = &file->own.slots[slot].held[device];

	atomic_fetch_sub(mine, held_word(units) - units);
	FAULT("give-back: on its way");
	lower(&file->own.devices[device].total, units);
	FAULT("give-back: out of total");
	atomic_fetch_sub(mine, units);
}

void ledger_move_to_shared(struct region_file *file, unsigned slot, unsigned device, uint64_t units,
	struct region_shared *shared, uint64_t word)
{
	_Atomic uint64_t *mine = &file->own.slots[slot].held[device];

	atomic_fetch_sub(mine, held_word(units) - units);
	FAULT("shared: on its way");
	lower(&file->own.devices[device].total, 0);
	atomic_store(&shared->word, word);
	FAULT("shared: moved");
	atomic_fetch_sub(mine, units);
}

void ledger_move_from_shared(struct region_file *file, unsigned slot, unsigned device,
	uint64_t units, struct region_shared *shared, uint64_t word)
{
	_Atomic uint64_t *mine = &file->own.slots[slot].held[device];

	atomic_fetch_add(mine, units);
	FAULT("shared: on its way back");
	lower(&file->own.devices[device].total, 0);
	atomic_store(&shared->word, word);
	FAULT("shared: moved back");
	atomic_fetch_add(mine, held_word(units) - units);
}

void ledger_end_shared(struct region_file *file, unsigned slot, struct region_shared *shared)
{
	uint64_t word = atomic_load(&shared->word), units = ledger_shared_units(word);
	unsigned device = ledger_shared_device(word);
	_Atomic uint64_t *mine = &file->own.slots[slot].held[device];

	atomic_fetch_add(mine, units);
	FAULT("end: on its way");
	lower(&file->own.devices[device].total, 0);
	atomic_store(&shared->word, 0);
	FAULT("end: shared free");
	lower(&file->own.devices[device].total, units);
	FAULT("end: out of total");
	atomic_fetch_sub(mine, units);
}

static void reap_device(struct region_file *file, unsigned slot, unsigned device)
{
	_Atomic uint64_t *word = &file->own.slots[slot].held[device];
	uint64_t held = atomic_load(word) >> 32;

	if (held) {
		atomic_fetch_sub(word, held_word(held) - held);
		FAULT("reap: on its way");
		lower(&file->own.devices[device].total, held);
		FAULT("reap: out of total");
		atomic_fetch_sub(word, held);
	}
	/* Doubt comes before the word is cleared: ledger_settle() must see one of the two. */
	if (atomic_load(word)) {
		atomic_fetch_add(&file->own.devices[device].doubts, 1);
		FAULT("reap: in doubt");
		atomic_store(word, 0);
	}
}

void ledger_reap(struct region_file *file, unsigned slot)
{
	struct hami_slot *hami = &file->hami.slots[slot];
	struct region_slot *own = &file->own.slots[slot];

	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		reap_device(file, slot, d);
		/* relaxed: figures for people; the next owner of the slot starts from zero */
		for (int k = 0; k < CHARGE_KIND_COUNT; k++)
			atomic_store_explicit(&own->kind_bytes[d][k], 0, memory_order_relaxed);
		atomic_store_explicit(&hami->used[d].context_bytes, 0, memory_order_relaxed);
		atomic_store_explicit(&hami->used[d].module_bytes, 0, memory_order_relaxed);
		atomic_store_explicit(&hami->used[d].data_bytes, 0, memory_order_relaxed);
		atomic_store_explicit(&hami->used[d].total_bytes, 0, memory_order_relaxed);
	}
}

static uint64_t add_up_shared(const struct region_file *file, unsigned device, unsigned shared)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < shared && i < REGION_SHARED; i++) {
		uint64_t word = atomic_load(&file->own.shared[i].word);

		if (word && ledger_shared_device(word) == device)
			sum += ledger_shared_units(word);
	}
	return sum;
}

/* What the first so many slots and shared allocations hold together; false where something is on its way. */
static bool add_up(const struct region_file *file, unsigned device, unsigned slots, unsigned shared,
	uint64_t *ret_units)
{
	uint64_t sum = 0, on_their_way = 0;

	for (unsigned i = 0; i < slots && i < REGION_SLOTS; i++) {
		uint64_t word = atomic_load(&file->own.slots[i].held[device]);

		sum += word >> 32;
		on_their_way |= (uint32_t)word;
	}
	/* After the slots: see the beginning of this file. */
	sum += add_up_shared(file, device, shared);
	/* More than a word can say was tampered with: then all is in use. */
	*ret_units = sum < UINT32_MAX ? sum : UINT32_MAX;
	return on_their_way == 0;
}

/* Sets the total, if it was not changed since it was seen. */
static int replace_total(struct region_file *file, unsigned device, uint64_t seen, uint64_t units)
{
	return atomic_compare_exchange_strong(
		       &file->own.devices[device].total, &seen, units << 32 | (uint32_t)(seen + 1))
		       ? 0
		       : -EAGAIN;
}

/* One attempt of ledger_settle(); whether it found the quiet instant that it needs. */
static int settle_once(struct region_file *file, unsigned device)
{
	uint64_t seen = atomic_load(&file->own.devices[device].total), sum;

	if (!add_up(file, device, atomic_load(&file->own.slot_high),
		    atomic_load(&file->own.shared_high), &sum))
		return -EAGAIN;
	return replace_total(file, device, seen, sum);
}

int ledger_settle(struct region_file *file, unsigned device)
{
	struct region_device *d = &file->own.devices[device];

	for (int i = 0; i < SETTLE_ATTEMPTS; i++) {
		uint64_t settled = atomic_load(&d->doubts_settled),
			 raised = atomic_load(&d->doubts);

		if (settled == raised)
			return 0;
		if (settle_once(file, device) != 0)
			continue;
		/* Only the doubts that were there before we looked; a later one stays. */
		while (settled < raised &&
			!atomic_compare_exchange_strong(&d->doubts_settled, &settled, raised))
			;
	}
	return -EAGAIN;
}

bool ledger_audit(struct region_file *file, unsigned device)
{
	for (int i = 0; i < AUDIT_ATTEMPTS; i++) {
		uint64_t seen = atomic_load(&file->own.devices[device].total), sum;
		/* All of them: a hostile slot_high or shared_high would hide some. */
		bool is_quiet = add_up(file, device, REGION_SLOTS, REGION_SHARED, &sum);

		if (atomic_load(&file->own.devices[device].total) != seen)
			continue;
		if (seen >> 32 == sum || (seen >> 32 > sum && !is_quiet))
			return true;
		if (replace_total(file, device, seen, sum) == 0)
			return false;
	}
	return true;
}

static _Atomic uint64_t *hami_field(struct hami_use *use, enum charge_kind kind)
{
	switch (kind) {
	case CHARGE_CONTEXT:
		return &use->context_bytes;
	case CHARGE_MODULE:
		return &use->module_bytes;
	default:
		return &use->data_bytes;
	}
}

void ledger_note(struct region_file *file, unsigned slot, unsigned device, enum charge_kind kind,
	int64_t bytes)
{
	struct hami_use *use = &file->hami.slots[slot].used[device];

	/* relaxed: figures for people and for HAMi's monitor, which reads without order */
	atomic_fetch_add_explicit(&file->own.slots[slot].kind_bytes[device][kind], (uint64_t)bytes,
		memory_order_relaxed);
	atomic_fetch_add_explicit(hami_field(use, kind), (uint64_t)bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&use->total_bytes, (uint64_t)bytes, memory_order_relaxed);
}
