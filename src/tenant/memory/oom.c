/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where a process of a slice is ended: by itself, and because the slice's owner asked
 * for it. Every process decides for itself by the same books, so at most one finds that it is the
 * one: who holds most, and of equals whose slot is lowest. What several hold counts for each of them.
 */
#define LOG_TOPIC LOG_LEDGER
#include "tenant/memory/oom.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/scratch.h"
#include "policy/pressure.h"
#include "region/ledger.h"
#include "region/shared.h"
#include "tenant/memory/charge.h"
#include "tenant/slice/quota.h"

static struct lock look_lock; /* only ever tried */
static struct pressure pressures[STATE_ORDINALS];

static uint32_t limit_of(const struct device *d)
{
	/* relaxed: see set_limit() */
	return atomic_load_explicit(&d->limit_units, memory_order_relaxed);
}

/* A quota that is lowered while we look is a shrink of its own, and seen by the next look. */
static enum pressure_verdict look(struct device *d)
{
	bool is_shrunk = atomic_exchange(&d->is_shrunk, false);
	enum pressure_verdict verdict = pressure_look(&pressures[d->ordinal], is_shrunk,
		limit_of(d), ledger_used_units(state.region.file, d->entry));

	if (verdict != PRESSURE_NONE)
		atomic_store(&d->is_shrunk, true);
	return verdict;
}

/* Books that were tampered with may say more than a word has room for. */
static uint32_t add(uint32_t units, uint64_t more)
{
	return more < UINT32_MAX - units ? units + (uint32_t)more : UINT32_MAX;
}

static void add_shared(const struct device *d, uint32_t *held, unsigned count)
{
	const struct region_own *own = &state.region.file->own;
	unsigned high = atomic_load(&own->shared_high);

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++) {
		const struct region_shared *shared = &own->shared[i];
		uint64_t word = atomic_load(&shared->word);

		if (!word || ledger_shared_device(word) != d->entry)
			continue;
		for (unsigned slot = 0; slot < count; slot++)
			if (shared_is_held_by(shared, slot))
				held[slot] = add(held[slot], ledger_shared_units(word));
	}
}

/* Without memory for the figures nobody is ended at this look. */
static bool holds_most(const struct device *d)
{
	const struct region_own *own = &state.region.file->own;
	SCRATCH_ARRAY(uint32_t, held, REGION_SLOTS);
	unsigned count = atomic_load(&own->slot_high);

	if (!held)
		return false;
	if (count > REGION_SLOTS)
		count = REGION_SLOTS;
	for (unsigned i = 0; i < count; i++)
		held[i] = ledger_held_units(state.region.file, i, d->entry);
	add_shared(d, held, count);
	return pressure_largest(held, count) == (int)state.slot;
}

static void end_this_process(const struct device *d)
{
	log_warn("the quota was lowered below what the slice holds, and this process holds most of "
		 "it: it ends itself (ACTIVE_OOM_KILLER)",
		STR("device", d->uuid), U64("held_bytes", charge_held_bytes(d)),
		U64("used_bytes", ledger_used_bytes(state.region.file, d->entry)),
		U64("quota_bytes", (uint64_t)limit_of(d) * REGION_UNIT_BYTES));
	kill(getpid(), SIGKILL);
}

static void look_at(struct device *d)
{
	if (look(d) != PRESSURE_OVER)
		return;
	charge_have_back(d);
	if (look(d) == PRESSURE_OVER && holds_most(d))
		end_this_process(d);
}

void oom_look(void)
{
	static _Atomic uint64_t next_ns;

	if (LIKELY(!quota_options()->has_oom_killer) || !clock_is_due(&next_ns, QUOTA_CHECK_NS) ||
		!lock_try(&look_lock))
		return;
	state_refresh_limits(false);
	for (CUdevice i = 0; i < STATE_ORDINALS; i++)
		if (state_known_device(i))
			look_at(state_known_device(i));
	lock_leave(&look_lock);
}

void oom_compare(struct device *device, enum parts_when when)
{
	if (when == PARTS_TICK)
		oom_look();
}

void oom_reset_after_fork(void)
{
	look_lock = (struct lock)LOCK_INIT;
	for (int i = 0; i < STATE_ORDINALS; i++)
		pressures[i] = (struct pressure){.is_in_grace = false};
}
