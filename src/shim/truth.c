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

#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "shim/nvml.h"
#include "shim/shared.h"

/* Comparisons that another thread's charges may spoil before the reservation is kept whole. */
#define SETTLE_TRIES 4

/* A context that is just being made is not in NVML's list yet; this often in a row it never will be. */
#define MISSES_MAX 5

/* Between two looks that are to tell a free under way from memory that is gone. */
#define SECOND_LOOK_NS 2000000

/* Between two urgent questions: a program that is refused again and again asks often. */
#define URGENT_NS 20000000u

struct truth {
	struct lock lock; /* held for one comparison, and only ever tried */
	_Atomic uint64_t next_ns, next_urgent_ns;
	_Atomic uint64_t other_bytes; /* what is charged as "other" */
	bool was_less;		      /* by the last comparison */
	unsigned misses;	      /* questions in a row that NVML had no figure for */
};
static struct truth truths[STATE_ORDINALS];

static uint64_t held_bytes(const struct device *d)
{
	return ledger_held_bytes(state.region.file, state.slot, d->entry);
}

/* What came from another slice. */
static uint64_t foreign_bytes(const struct device *d)
{
	/* relaxed: compared before and after, as part of what is held */
	return atomic_load_explicit(
		&state.region.file->own.slots[state.slot].kind_bytes[d->entry][CHARGE_SHARED],
		memory_order_relaxed);
}

/* What is in the books and not always in NVML's figure: managed memory, and what is another's. */
static uint64_t hidden_bytes(const struct device *d)
{
	const _Atomic uint64_t *kinds =
		state.region.file->own.slots[state.slot].kind_bytes[d->entry];

	/* relaxed: compared before and after, as part of what is held */
	return atomic_load_explicit(&kinds[CHARGE_MANAGED], memory_order_relaxed) +
	       atomic_load_explicit(&kinds[CHARGE_SHARED], memory_order_relaxed);
}

/* What NVML shows beyond the books: between these two, which differ where memory is shared. */
struct beyond {
	uint64_t least, most;
};

static uint64_t above(uint64_t used, uint64_t known)
{
	return used > known ? round_up_u64(used - known, REGION_UNIT_BYTES) : 0;
}

/*
 * What NVML shows beyond the books; false where that cannot be told now. What this process made and
 * shares is shown for it, and charged to no process; what it opened is shown for it or for its maker.
 */
static bool look(struct truth *t, const struct device *d, struct beyond *ret_beyond)
{
	uint64_t other = t->other_bytes, held = held_bytes(d), used, known;
	uint64_t hidden = hidden_bytes(d), shared = foreign_bytes(d) + shared_opened_bytes(d);
	uint64_t made = shared_made_bytes(d);
	int r = nvml_own_use(d->uuid, &used);

	if (r < 0) {
		if (++t->misses == MISSES_MAX)
			log_debug("nvml has no figure for this process, so the books stand alone",
				STR("device", d->uuid));
		return false;
	}
	t->misses = 0;
	if (held != held_bytes(d) || hidden != hidden_bytes(d) || hidden + other > held ||
		made != shared_made_bytes(d) || shared != foreign_bytes(d) + shared_opened_bytes(d))
		return false;
	known = held - hidden - other + made;
	*ret_beyond =
		(struct beyond){.least = above(used, known + shared), .most = above(used, known)};
	return true;
}

/* Makes "other" what it was found to be; under the truth's lock. */
static void correct(struct truth *t, struct device *d, uint64_t other)
{
	uint64_t charged = t->other_bytes;

	if (other > charged)
		charge_anyway(d, other - charged, CHARGE_OTHER);
	else if (other < charged)
		charge_give_back(d, charged - other, CHARGE_OTHER);
	atomic_fetch_add(&t->other_bytes, other - charged);
	t->was_less = false;
	if (other > charged + REGION_UNIT_BYTES || charged > other + REGION_UNIT_BYTES)
		/* relaxed: a count for people */
		atomic_fetch_add_explicit(&state.region.file->own.devices[d->entry].drift_count, 1,
			memory_order_relaxed);
}

/* What "other" is to be: what it is, as far as that can be. */
static uint64_t within(const struct beyond *beyond, uint64_t other)
{
	if (other < beyond->least)
		return beyond->least;
	return other > beyond->most ? beyond->most : other;
}

/* Looks; what is less is believed when it is so twice. Under the truth's lock. */
static void compare(struct truth *t, struct device *d, bool is_urgent)
{
	struct timespec pause = {.tv_nsec = SECOND_LOOK_NS};
	struct beyond beyond;

	if (!look(t, d, &beyond))
		return;
	if (beyond.most < t->other_bytes && !t->was_less) {
		t->was_less = true;
		if (!is_urgent)
			return;
		nanosleep(&pause, NULL);
		if (!look(t, d, &beyond))
			return;
	}
	correct(t, d, within(&beyond, t->other_bytes));
}

static void truth_check(struct device *device, bool is_urgent)
{
	struct truth *t = &truths[device->ordinal];
	_Atomic uint64_t *next = is_urgent ? &t->next_urgent_ns : &t->next_ns;
	uint64_t now = clock_coarse_ns();

	/* relaxed: the clock decides how often, nothing else does */
	if (now < atomic_load_explicit(next, memory_order_relaxed) || held_bytes(device) == 0 ||
		!lock_try(&t->lock))
		return;
	atomic_store_explicit(&t->next_urgent_ns, now + URGENT_NS, memory_order_relaxed);
	atomic_store_explicit(&t->next_ns, now + TRUTH_CHECK_NS, memory_order_relaxed);
	if (t->misses < MISSES_MAX)
		compare(t, device, is_urgent);
	lock_leave(&t->lock);
}

static bool wait_for(struct lock *lock)
{
	uint64_t deadline = clock_now_ns() + TRUTH_WAIT_NS;
	struct timespec pause = {.tv_nsec = 100000};

	while (!lock_try(lock)) {
		if (clock_now_ns() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* By how much "other" has grown, as far as can be told; under the truth's lock. */
static int64_t growth(
	struct truth *t, struct device *d, const struct charge *charge, int64_t free_change_bytes)
{
	int64_t reserved = (int64_t)charge->units * REGION_UNIT_BYTES;
	struct beyond beyond = {.least = 0, .most = 0};
	bool is_seen = false;

	for (int i = 0; i < SETTLE_TRIES && t->misses < MISSES_MAX && !is_seen; i++)
		is_seen = look(t, d, &beyond);
	if (is_seen && beyond.least == beyond.most)
		return beyond.most > t->other_bytes ? (int64_t)(beyond.most - t->other_bytes) : 0;
	if (!is_seen && t->misses < MISSES_MAX)
		return reserved;
	/* No figure, or one that shared memory blurs: what the device has less of is what was taken. */
	return round_out_i64(free_change_bytes, REGION_UNIT_BYTES);
}

void truth_settle(struct device *device, struct charge *charge, int64_t free_change_bytes)
{
	struct truth *t = &truths[device->ordinal];
	bool is_ours = wait_for(&t->lock);
	int64_t more;

	/* Without the lock the whole reservation stays, and the next comparison finds what is too much. */
	more = is_ours ? growth(t, device, charge, free_change_bytes)
		       : (int64_t)charge->units * REGION_UNIT_BYTES;
	if (more < -(int64_t)t->other_bytes)
		more = -(int64_t)t->other_bytes;
	atomic_fetch_add(&t->other_bytes, (uint64_t)more);
	charge_settle(charge, more);
	/* What the call gave back is to be found before anything is refused. */
	if (free_change_bytes < 0)
		atomic_store(&t->next_urgent_ns, 0);
	if (is_ours)
		lock_leave(&t->lock);
}

void truth_start(void)
{
	charge_check_with(truth_check);
}

void truth_forget(struct device *device)
{
	struct truth *t = &truths[device->ordinal];
	struct beyond beyond = {.least = 0, .most = 0};

	/* A comparison under way will see for itself. */
	if (!lock_try(&t->lock))
		return;
	if (t->misses >= MISSES_MAX || held_bytes(device) == 0 || !look(t, device, &beyond))
		beyond.most = 0;
	correct(t, device, within(&beyond, t->other_bytes));
	lock_leave(&t->lock);
}

void truth_forget_parent(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		truths[i] = (struct truth){.was_less = false};
}
