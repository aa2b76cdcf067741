/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own figure beside the books.
 *
 * The books run ahead of the driver: a charge is there before the memory is, and leaves after it.
 * So NVML's figure is above the books only by what is in none of them. Managed memory is the one
 * thing that is in the books and not in NVML's figure. A comparison counts only if the process's
 * charges were the same before and after the question; "other" rises at once and falls when two
 * comparisons in a row agree that it is less, because a free under way makes it look smaller.
 */
#define LOG_TOPIC LOG_LEDGER
#include "shim/truth.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "shim/charge.h"
#include "shim/nvml.h"

/* A context that is just being made is not in NVML's list yet; this often in a row it never will be. */
#define MISSES_MAX 5

/* Between two urgent questions: a program that is refused again and again asks often. */
#define URGENT_NS 20000000u

struct truth {
	struct lock lock; /* held for one comparison, and only ever tried */
	_Atomic uint64_t next_ns, next_urgent_ns;
	uint64_t other_bytes; /* what is charged as "other" */
	bool was_less;	      /* by the last comparison */
	unsigned misses;      /* questions in a row that NVML had no figure for */
};
static struct truth truths[STATE_ORDINALS];

static uint64_t held_bytes(const struct device *d)
{
	return ledger_held_bytes(state.region.file, state.slot, d->entry);
}

static uint64_t managed_bytes(const struct device *d)
{
	/* relaxed: compared before and after, as part of what is held */
	return atomic_load_explicit(
		&state.region.file->own.slots[state.slot].kind_bytes[d->entry][CHARGE_MANAGED],
		memory_order_relaxed);
}

/* What NVML shows beyond the books; false where that cannot be told now. */
static bool look(struct truth *t, const struct device *d, uint64_t *ret_other_bytes)
{
	uint64_t other = t->other_bytes, held = held_bytes(d), used, known;
	uint64_t managed = managed_bytes(d);
	int r = nvml_own_use(d->uuid, &used);

	if (r < 0) {
		if (++t->misses == MISSES_MAX)
			log_debug("nvml has no figure for this process, so the books stand alone",
				STR("device", d->uuid));
		return false;
	}
	t->misses = 0;
	if (held != held_bytes(d) || managed != managed_bytes(d) || managed + other > held)
		return false;
	known = held - managed - other;
	*ret_other_bytes = used > known ? round_up_u64(used - known, REGION_UNIT_BYTES) : 0;
	return true;
}

/* Under the truth's lock. */
static void correct(struct truth *t, struct device *d, uint64_t other)
{
	uint64_t charged = t->other_bytes;

	if (other < charged && !t->was_less) {
		t->was_less = true;
		return;
	}
	t->was_less = false;
	if (other > charged)
		charge_anyway(d, other - charged, CHARGE_OTHER);
	else if (other < charged)
		charge_give_back(d, charged - other, CHARGE_OTHER);
	t->other_bytes = other;
}

static void truth_check(struct device *device, bool is_urgent)
{
	struct truth *t = &truths[device->ordinal];
	_Atomic uint64_t *next = is_urgent ? &t->next_urgent_ns : &t->next_ns;
	uint64_t now = clock_coarse_ns(), other;

	/* relaxed: the clock decides how often, nothing else does */
	if (now < atomic_load_explicit(next, memory_order_relaxed) || held_bytes(device) == 0 ||
		!lock_try(&t->lock))
		return;
	atomic_store_explicit(&t->next_urgent_ns, now + URGENT_NS, memory_order_relaxed);
	atomic_store_explicit(&t->next_ns, now + TRUTH_CHECK_NS, memory_order_relaxed);
	if (t->misses < MISSES_MAX && look(t, device, &other))
		correct(t, device, other);
	lock_leave(&t->lock);
}

void truth_start(void)
{
	charge_check_with(truth_check);
}

void truth_forget(struct device *device)
{
	struct truth *t = &truths[device->ordinal];

	/* A comparison under way will see for itself. */
	if (!lock_try(&t->lock))
		return;
	t->was_less = true;
	correct(t, device, 0);
	lock_leave(&t->lock);
}

void truth_forget_parent(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		truths[i] = (struct truth){.was_less = false};
}
