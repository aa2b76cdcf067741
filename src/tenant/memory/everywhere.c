/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory on the devices where it may come to lie.
 *
 * These are found when the first is asked for: a device of which the slice has no memory, and on which this process holds nothing, is none, as
 * no context fits there and nothing is sent there. It becomes one before its quota leaves 0, and is charged for all that there is by then,
 * whether it fits or not; none ceases to be one. So what there is has been charged on all of them at any moment.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/everywhere.h"

#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/charge.h"
#include "tenant/slice/quota.h"

static struct lock everywhere_lock; /* guards what follows; held over a charge that asks nobody */
static _Atomic bool is_known;	    /* the devices were looked at; never unset */
static _Atomic uint64_t
	counted; /* a bit an ordinal; read without the lock, too, as it only grows */
static uint64_t
	late; /* of these, those that were charged whether it fits or not, and were not seen to have room since */
static uint32_t coming[STATE_ORDINALS]; /* threads that are about to give it a quota */
static uint64_t own_bytes[STATE_ORDINALS], all_bytes; /* what there is, and whose own it is */

static bool is_in(uint64_t set, CUdevice ordinal)
{
	return set >> ordinal & 1;
}

static uint64_t with(uint64_t set, CUdevice ordinal)
{
	return set | UINT64_C(1) << ordinal;
}

/* Under the lock. relaxed: see set_limit(), whose threads are in `coming` until it is set */
static bool may_hold_some(const struct device *device)
{
	return coming[device->ordinal] || charge_held_bytes(device) ||
	       atomic_load_explicit(&device->limit_units, memory_order_relaxed) != 0;
}

/* Without the lock, as a device that is met gets its quota. */
static int meet_all(void)
{
	struct device *device;
	int count = 0;

	if (!cuda.cuDeviceGetCount || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return 0;
	if (count > STATE_ORDINALS)
		count = STATE_ORDINALS;
	for (int i = 0; i < count; i++)
		if (state_meet_device(i, &device) != 0)
			log_debug("a device that cannot be met counts no managed memory",
				U64("ordinal", (uint64_t)i));
	return count;
}

static uint64_t devices(void)
{
	uint64_t found = 0;
	int count;

	/* pairs with the release below */
	if (LIKELY(atomic_load_explicit(&is_known, memory_order_acquire)))
		return atomic_load(&counted);
	count = meet_all();
	LOCK_SCOPE(&everywhere_lock);
	/* relaxed: written under the lock */
	if (!atomic_load_explicit(&is_known, memory_order_relaxed)) {
		for (int i = 0; i < count; i++)
			if (state_known_device(i) && may_hold_some(state_device(i)))
				found = with(found, i);
		atomic_store(&counted, found);
		/* pairs with the acquire above */
		atomic_store_explicit(&is_known, true, memory_order_release);
	}
	return atomic_load(&counted);
}

void everywhere_quota_comes(struct device *device)
{
	CUdevice i = device->ordinal;
	LOCK_SCOPE(&everywhere_lock);

	coming[i]++;
	/* relaxed: written under the lock */
	if (!atomic_load_explicit(&is_known, memory_order_relaxed) ||
		is_in(atomic_load(&counted), i))
		return;
	if (all_bytes > own_bytes[i]) {
		charge_anyway(device, all_bytes - own_bytes[i], CHARGE_MANAGED);
		late = with(late, i);
	}
	atomic_store(&counted, with(atomic_load(&counted), i));
}

void everywhere_quota_came(struct device *device)
{
	LOCK_SCOPE(&everywhere_lock);

	/* A child of fork() may have forgotten that it came. */
	if (coming[device->ordinal])
		coming[device->ordinal]--;
}

/* What is charged on all devices but these is entered; else those that are left. */
static uint64_t enter(CUdevice own, uint64_t bytes, uint64_t charged)
{
	uint64_t left;
	LOCK_SCOPE(&everywhere_lock);

	left = atomic_load(&counted) & ~charged;
	if (left == 0) {
		own_bytes[own] += bytes;
		all_bytes += bytes;
	}
	return left;
}

static void give_back_on(uint64_t set, uint64_t bytes)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		if (is_in(set, i))
			charge_give_back(state_device(i), bytes, CHARGE_MANAGED);
}

/* Adds each device that was charged to *charged; false where one has no room. */
static bool charge_on(uint64_t set, uint64_t bytes, uint64_t *charged)
{
	for (int i = 0; i < STATE_ORDINALS; i++) {
		struct charge other = CHARGE_NULL;

		if (!is_in(set, i))
			continue;
		if (charge_reserve(state_device(i), bytes, CHARGE_MANAGED, &other) !=
			CUDA_SUCCESS) {
			log_warn("managed memory counts on every device that the process sees, and "
				 "on "
				 "this one no room is left; CUDA_VISIBLE_DEVICES chooses devices",
				STR("device", state_device(i)->uuid), U64("bytes", bytes));
			return false;
		}
		charge_take(&other);
		*charged = with(*charged, i);
	}
	return true;
}

bool everywhere_charge(const struct charge *charge)
{
	uint64_t bytes = (uint64_t)charge->units * REGION_UNIT_BYTES, charged, left;
	CUdevice own = charge->device->ordinal;

	(void)devices();
	charged = with(0, own);
	/* One more round where another device has got a quota meanwhile. */
	while ((left = enter(own, bytes, charged)) != 0) {
		if (!charge_on(left, bytes, &charged)) {
			give_back_on(charged & ~with(0, own), bytes);
			return false;
		}
	}
	return true;
}

void everywhere_give_back(const struct device *own, uint64_t bytes)
{
	uint64_t all;

	lock_enter(&everywhere_lock);
	own_bytes[own->ordinal] -= bytes;
	all_bytes -= bytes;
	all = atomic_load(&counted);
	lock_leave(&everywhere_lock);
	give_back_on(all & ~with(0, own->ordinal), bytes);
}

bool everywhere_is_bounded(void)
{
	uint64_t all = devices();

	if (quota_may_change())
		return true;
	for (int i = 0; i < STATE_ORDINALS; i++)
		/* relaxed: see set_limit() */
		if (is_in(all, i) && atomic_load_explicit(&state_device(i)->limit_units,
					     memory_order_relaxed) != LEDGER_NO_LIMIT)
			return true;
	return false;
}

static bool is_late(CUdevice ordinal)
{
	LOCK_SCOPE(&everywhere_lock);

	return is_in(late, ordinal);
}

/* A device that was charged whether it fits or not must have had room since. */
static bool has_room(CUdevice ordinal)
{
	if (LIKELY(!is_late(ordinal)))
		return true;
	if (charge_is_above_quota(state_device(ordinal)))
		return false;
	LOCK_SCOPE(&everywhere_lock);
	late &= ~with(0, ordinal);
	return true;
}

bool everywhere_may_lie_on(CUdevice ordinal)
{
	struct device *device;

	if (ordinal < 0 || ordinal >= STATE_ORDINALS || state_enter() != STATE_OPEN)
		return true;
	/* What the driver does not know it refuses itself. */
	return is_in(devices(), ordinal) ? has_room(ordinal)
					 : state_meet_device(ordinal, &device) != 0;
}

void everywhere_reset_after_fork(void)
{
	everywhere_lock = (struct lock)LOCK_INIT;
	atomic_store(&is_known, false);
	atomic_store(&counted, 0);
	late = all_bytes = 0;
	for (int i = 0; i < STATE_ORDINALS; i++)
		own_bytes[i] = coming[i] = 0;
}
