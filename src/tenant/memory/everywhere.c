/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory on the devices where it may come to lie. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/everywhere.h"

#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/charge.h"

/* Said once, so that what was charged is what is given back. */
#define IS_KNOWN (UINT64_C(1) << 63)
static _Atomic uint64_t known; /* a bit an ordinal */

/* relaxed: see set_limit() */
static bool has_memory(const struct device *device)
{
	return atomic_load_explicit(&device->limit_units, memory_order_relaxed) != 0;
}

static uint64_t devices(void)
{
	uint64_t found = IS_KNOWN, before = atomic_load(&known);
	struct device *device;
	int count = 0;

	if (LIKELY(before))
		return before;
	if (!cuda.cuDeviceGetCount || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		count = 0;
	for (int i = 0; i < count && i < STATE_ORDINALS - 1; i++)
		if (state_meet_device(i, &device) == 0 && has_memory(device))
			found |= UINT64_C(1) << i;
	return atomic_compare_exchange_strong(&known, &before, found) ? found : before;
}

/* Those below an ordinal, but for the own one. */
static void give_back_below(int end, int own, uint64_t bytes)
{
	uint64_t all = devices();

	for (int i = 0; i < end; i++)
		if (all >> i & 1 && i != own)
			charge_give_back(state_device(i), bytes, CHARGE_MANAGED);
}

bool everywhere_charge(const struct charge *charge)
{
	uint64_t all = devices(), bytes = (uint64_t)charge->units * REGION_UNIT_BYTES;
	int own = charge->device->ordinal;

	for (int i = 0; i < STATE_ORDINALS - 1; i++) {
		struct charge other = CHARGE_NULL;

		if (!(all >> i & 1) || i == own)
			continue;
		if (charge_reserve(state_device(i), bytes, CHARGE_MANAGED, &other) !=
			CUDA_SUCCESS) {
			give_back_below(i, own, bytes);
			log_warn("managed memory counts on every device that the process sees, and "
				 "on "
				 "this one no room is left; CUDA_VISIBLE_DEVICES chooses devices",
				STR("device", state_device(i)->uuid), U64("bytes", bytes));
			return false;
		}
		charge_take(&other);
	}
	return true;
}

void everywhere_give_back(const struct device *own, uint64_t bytes)
{
	give_back_below(STATE_ORDINALS - 1, own->ordinal, bytes);
}

bool everywhere_is_bounded(void)
{
	uint64_t all = devices();

	for (int i = 0; i < STATE_ORDINALS - 1; i++)
		/* relaxed: see set_limit() */
		if (all >> i & 1 && atomic_load_explicit(&state_device(i)->limit_units,
					    memory_order_relaxed) != LEDGER_NO_LIMIT)
			return true;
	return false;
}

bool everywhere_may_lie_on(CUdevice ordinal)
{
	struct device *device;

	return ordinal < 0 || ordinal >= STATE_ORDINALS - 1 || state_enter() != STATE_OPEN ||
	       devices() >> ordinal & 1 || state_meet_device(ordinal, &device) != 0;
}

void everywhere_reset_after_fork(void)
{
	atomic_store(&known, 0);
}
