/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: who holds how much of each device of a slice, exact across processes and deaths. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"

enum {
	_LEDGER_E_SUCCESS = 0,
	LEDGER_E_FULL, /* the charge does not fit under the limit; nothing was changed */
};

#define LEDGER_NO_LIMIT UINT32_MAX

/*
 * No card has 2 TiB; a larger charge is refused. One above the limit is refused before it is on its way, so what a process has on
 * its way overflows no word until as many of its threads charge at once as the limit goes into 2^32 units: 3,276 at 80 GiB, and 128
 * without a limit.
 */
#define LEDGER_MAX_UNITS (UINT32_C(1) << 25)

/* Bytes to units, rounded up; more than LEDGER_MAX_UNITS where they are absurd. */
static inline uint64_t ledger_units(uint64_t bytes)
{
	return round_up_u64(bytes, REGION_UNIT_BYTES) / REGION_UNIT_BYTES;
}

/* A limit in units, rounded down, so that the sum of charges never exceeds the bytes asked for. */
static inline uint32_t ledger_limit_units(uint64_t bytes)
{
	uint64_t units = bytes / REGION_UNIT_BYTES;

	return units >= LEDGER_NO_LIMIT ? LEDGER_NO_LIMIT - 1 : (uint32_t)units;
}

/*
 * Charges units of the device to the slot, if the device's total stays within limit_units. Of two
 * processes that charge at the same instant, each sees the other's charge or is seen by it.
 *
 * Context: any thread of the slot's process; never blocks, makes no system call, keeps errno.
 */
int ledger_charge(struct region_file *file, unsigned slot, unsigned device, uint64_t units,
	uint32_t limit_units) MUST_CHECK;

/* Charges although it may not fit: for memory that the driver has taken already. */
void ledger_charge_anyway(struct region_file *file, unsigned slot, unsigned device, uint64_t units);

/* Gives back what was charged. Context: as ledger_charge(). */
void ledger_uncharge(struct region_file *file, unsigned slot, unsigned device, uint64_t units);

/*
 * Moves units that the slot holds into a shared allocation (shared.h), whose word becomes `word`: the slice's total
 * does not change, at no instant.
 */
void ledger_move_to_shared(struct region_file *file, unsigned slot, unsigned device, uint64_t units,
	struct region_shared *shared, uint64_t word);

/* The other way round: units of a shared allocation, whose word becomes `word`, are the slot's again. */
void ledger_move_from_shared(struct region_file *file, unsigned slot, unsigned device,
	uint64_t units, struct region_shared *shared, uint64_t word);

/* Gives back what a shared allocation stands for, and frees it; the slot's process does it. */
void ledger_end_shared(struct region_file *file, unsigned slot, struct region_shared *shared);

/* The parts of a shared allocation's word. */
static inline uint64_t ledger_shared_word(unsigned slot, unsigned device, uint64_t units)
{
	return units << 32 | SHARED_IS_USED | (uint64_t)device << 16 | slot;
}

static inline uint64_t ledger_shared_units(uint64_t word)
{
	return word >> 32;
}

static inline unsigned ledger_shared_device(uint64_t word)
{
	return word >> 16 & (REGION_DEVICES - 1);
}

static inline unsigned ledger_shared_slot(uint64_t word)
{
	return word & (REGION_SLOTS - 1);
}

/* Units of the device in use by the whole slice, as far as the books know. */
static inline uint32_t ledger_used_units(const struct region_file *file, unsigned device)
{
	/* relaxed: a number to show, or to be checked by the exchange in ledger_charge() */
	return (uint32_t)(atomic_load_explicit(
				  &file->own.devices[device].total, memory_order_relaxed) >>
			  32);
}

/* Units that the slot holds, without those on their way. */
static inline uint32_t ledger_held_units(
	const struct region_file *file, unsigned slot, unsigned device)
{
	/* relaxed: as above */
	return (uint32_t)(atomic_load_explicit(
				  &file->own.slots[slot].held[device], memory_order_relaxed) >>
			  32);
}

/* The same with the number of changes: while it is equal, no process of the slice has charged or given back. */
static inline uint64_t ledger_changes(const struct region_file *file, unsigned device)
{
	return atomic_load(&file->own.devices[device].total);
}

/* Counts a change of the device's memory that leaves all words of the ledger as they are. */
void ledger_count_change(struct region_file *file, unsigned device);

/* The same in bytes. */
static inline uint64_t ledger_used_bytes(const struct region_file *file, unsigned device)
{
	return (uint64_t)ledger_used_units(file, device) * REGION_UNIT_BYTES;
}

static inline uint64_t ledger_held_bytes(
	const struct region_file *file, unsigned slot, unsigned device)
{
	return (uint64_t)ledger_held_units(file, slot, device) * REGION_UNIT_BYTES;
}

/*
 * Gives back all that a dead process's slot holds. The caller owns the slot by its byte lock. What
 * the process was about to add or take away when it died becomes doubt, for ledger_settle().
 */
void ledger_reap(struct region_file *file, unsigned slot);

/*
 * Where a dead process left doubt about a device, makes the total exact again: at an instant when
 * no living process is between two steps, and none was in between, it sets it to the sum of what
 * the slots hold. Returns 0 where there is no doubt (any more), -EAGAIN where the others left no
 * such instant in a bounded number of attempts; the total is then too high at worst, never too low.
 */
int ledger_settle(struct region_file *file, unsigned device) MUST_CHECK;

/* Whether a dead process left doubt about the device that is not settled yet. */
static inline bool ledger_is_in_doubt(const struct region_file *file, unsigned device)
{
	const struct region_device *d = &file->own.devices[device];

	return atomic_load(&d->doubts_settled) != atomic_load(&d->doubts);
}

/*
 * Holds the total against what the slots hold. A total that is too low, or too high with nothing on its
 * way, can only have been tampered with: it is put right, and false returned. A hostile slot's absurd
 * word makes the device full. Context: any thread; some 10 us.
 */
bool ledger_audit(struct region_file *file, unsigned device);

/* Keeps the figures by kind and HAMi's fields; bytes may be negative. Nothing depends on them. */
void ledger_note(struct region_file *file, unsigned slot, unsigned device, enum charge_kind kind,
	int64_t bytes);
