/* SPDX-License-Identifier: Apache-2.0 */
/* Charges: reserve, call the driver, keep or undo. */
#define LOG_TOPIC LOG_LEDGER
#include "tenant/memory/charge.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "region/shared.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/parts.h"
#include "tenant/slice/quota.h"

#define AUDIT_NS    1000000000u
#define SWEEPS_MOST 16 /* on the way to one refusal */

/* The first words are threads' own, the others are shared. */
#define OWN_WORDS    192
#define SHARED_WORDS 64
static struct {
	struct charge_word word;
} __attribute__((aligned(CACHE_LINE_BYTES))) words[OWN_WORDS + SHARED_WORDS];
static _Atomic uint32_t own_words; /* that were given out */
__thread struct charge_word *charge_own_word;

/* Nearly a thread's own, too: stacks lie far apart. */
static struct charge_word *shared_word(void)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

	return &words[OWN_WORDS + (stack >> 16 ^ stack >> 22) % SHARED_WORDS].word;
}

void charge_enter_slowly(void)
{
	/* relaxed: a number, of which each is given out once */
	uint32_t i = atomic_load_explicit(&own_words, memory_order_relaxed);

	if (i < OWN_WORDS)
		i = atomic_fetch_add_explicit(&own_words, 1, memory_order_relaxed);
	if (i < OWN_WORDS)
		charge_own_word = &words[i].word;
	/* pairs with charge_traffic(), as in charge_enter() */
	atomic_fetch_add(&(i < OWN_WORDS ? charge_own_word : shared_word())->calls, CHARGE_CALL);
}

void charge_leave_slowly(void)
{
	/* as above */
	atomic_fetch_sub(&shared_word()->calls, 1);
}

void charge_unsettle_slowly(uint64_t bytes)
{
	/* pairs with charge_unsettled_bytes(), as in charge_unsettle() */
	atomic_fetch_add(&shared_word()->unsettled, bytes);
}

uint64_t charge_traffic(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < OWN_WORDS + SHARED_WORDS; i++)
		sum += atomic_load(&words[i].word.calls);
	return sum;
}

uint64_t charge_unsettled_bytes(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < OWN_WORDS + SHARED_WORDS; i++)
		sum += atomic_load(&words[i].word.unsettled);
	return sum;
}

_Atomic uint64_t charge_strays;
static _Atomic uint64_t unnamed[STATE_ORDINALS], code[STATE_ORDINALS];

void charge_unnamed_begins(const struct device *device)
{
	atomic_fetch_add(&unnamed[device->ordinal], CHARGE_CALL);
}

void charge_unnamed_ends(const struct device *device)
{
	atomic_fetch_sub(&unnamed[device->ordinal], 1);
}

uint64_t charge_unnamed_since(const struct device *device)
{
	/* pairs with charge_unnamed_begins(), which comes before the driver's call */
	return atomic_load(&unnamed[device->ordinal]);
}

void charge_code_begins(const struct device *device)
{
	atomic_fetch_add(&code[device->ordinal], CHARGE_CALL);
	charge_unnamed_begins(device);
}

void charge_code_ends(const struct device *device)
{
	charge_unnamed_ends(device);
	atomic_fetch_sub(&code[device->ordinal], 1);
}

uint64_t charge_code_since(const struct device *device)
{
	/* pairs with charge_code_begins(), as above */
	return atomic_load(&code[device->ordinal]);
}

static struct lock reap_lock;
/* Books that were tampered with are to lift no limit for longer than a second. */
static void audit(struct device *d)
{
	if (!ledger_audit(state.region.file, d->entry))
		log_warn("the accounting of a device was wrong and is corrected",
			STR("device", d->uuid));
}

/* What is to be looked at now and then, on the way of whoever charges: there is no thread for it. */
static void tick(struct device *d)
{
	static _Atomic uint64_t next_ns, next_audit_ns;

	if (LIKELY(!clock_is_due(&next_ns, QUOTA_CHECK_NS)))
		return;
	state_refresh_limits(true);
	if (clock_is_due(&next_audit_ns, AUDIT_NS))
		audit(d);
	parts_compare(d, PARTS_TICK);
}

static uint64_t held_units(const struct device *d)
{
	return atomic_load(&state.region.file->own.slots[state.slot].held[d->entry]) >> 32;
}

/*
 * A charge and then this look at the watch, the watch and then a look at what is held, all of them
 * sequentially consistent: who watches has seen the charge, or is seen here.
 */
static void show_to_watcher(struct device *d)
{
	uint64_t most = atomic_load(&d->watched), held;

	if (LIKELY(most == 0))
		return;
	held = held_units(d) + 1;
	while (most != 0 && most < held && !atomic_compare_exchange_weak(&d->watched, &most, held))
		;
}

uint64_t charge_held_bytes(const struct device *device)
{
	return ledger_held_bytes(state.region.file, state.slot, device->entry);
}

uint64_t charge_watch(struct device *device)
{
	atomic_store(&device->watched, 1);
	return held_units(device) * REGION_UNIT_BYTES;
}

uint64_t charge_watched(struct device *device)
{
	return (atomic_exchange(&device->watched, 0) - 1) * REGION_UNIT_BYTES;
}

static int try_charge(struct device *d, uint64_t units)
{
	/* relaxed: see set_limit() */
	int r = ledger_charge(state.region.file, state.slot, d->entry, units,
		atomic_load_explicit(&d->limit_units, memory_order_relaxed));

	if (LIKELY(r == 0))
		show_to_watcher(d);
	return r;
}

/* One thread of the process at a time looks for the dead; the others wait for what it finds. */
void charge_reap(struct device *d)
{
	uint64_t deadline = clock_now_ns() + SLOT_REAP_WAIT_NS;
	struct timespec pause = {.tv_nsec = 200000};
	unsigned reaped = 0;
	int r;

	while (!lock_try(&reap_lock)) {
		if (clock_now_ns() > deadline)
			return;
		nanosleep(&pause, NULL);
	}
	FAULT("reap: locked");
	r = slot_reap_until(&state.region, deadline, &reaped);
	if (r < 0)
		log_warn("dead processes of the slice cannot be looked for", U64("errno", -r));
	shared_sweep(&state.region, state.slot);
	if (ledger_settle(state.region.file, d->entry) != 0)
		log_debug("the accounting of a device could not be completed now");
	audit(d);
	lock_leave(&reap_lock);
}

/* Whether units were charged after all, by what could be had back, the cheapest first. */
static bool make_room(struct device *d, uint64_t units)
{
	state_refresh_limits(true);
	parts_collect(d);
	if (try_charge(d, units) == 0)
		return true;
	parts_trim(d);
	parts_compare(d, PARTS_REFUSAL);
	if (try_charge(d, units) == 0)
		return true;
	charge_reap(d);
	/* Another process may have had that room before us, and have let go of what it put there. */
	for (unsigned i = 0; i < SWEEPS_MOST; i++) {
		if (try_charge(d, units) == 0)
			return true;
		if (shared_sweep(&state.region, state.slot) == 0)
			break;
	}
	return false;
}

void charge_have_back(struct device *device)
{
	int saved_errno = errno;

	parts_trim(device);
	parts_compare(device, PARTS_REFUSAL);
	charge_reap(device);
	errno = saved_errno;
}

static bool is_above_quota(const struct device *device)
{
	/* relaxed: a limit of a moment ago is a limit */
	return ledger_used_units(state.region.file, device->entry) >
	       atomic_load_explicit(&device->limit_units, memory_order_relaxed);
}

bool charge_is_above_quota(struct device *device)
{
	if (LIKELY(!is_above_quota(device)))
		return false;
	charge_have_back(device);
	return is_above_quota(device);
}

static CUresult refuse(struct device *d, uint64_t bytes)
{
	/* relaxed: a count for people */
	atomic_fetch_add_explicit(
		&state.region.file->own.devices[d->entry].refusal_count, 1, memory_order_relaxed);
	log_info("device memory is refused: the quota is reached", STR("device", d->uuid),
		U64("bytes", bytes),
		U64("used_bytes", ledger_used_bytes(state.region.file, d->entry)));
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult charge_reserve(
	struct device *device, uint64_t bytes, enum charge_kind kind, struct charge *ret_charge)
{
	uint64_t units = ledger_units(bytes), since = charge_since(), current = current_since();
	int saved_errno = errno;
	bool has_room;

	tick(device);
	charge_unsettle(units * REGION_UNIT_BYTES);
	charge_enter();
	if (UNLIKELY(try_charge(device, units) != 0)) {
		charge_leave(NULL);
		has_room = make_room(device, units);
		if (!has_room) {
			charge_unsettle(-units * REGION_UNIT_BYTES);
			return refuse(device, bytes);
		}
		charge_enter();
	}
	FAULT("charge: reserved");
	errno = saved_errno;
	*ret_charge = (struct charge){.device = device,
		.units = (uint32_t)units,
		.kind = kind,
		.is_under_way = true,
		.unsettled = (uint32_t)units,
		.since = since,
		.unnamed = charge_unnamed_since(device),
		.current = current};
	return CUDA_SUCCESS;
}

CUresult charge_reserve_current(uint64_t bytes, enum charge_kind kind, struct charge *ret_charge)
{
	uint64_t current = current_since();
	enum state_mode mode = state_enter();
	struct device *device;
	CUdevice ordinal;
	CUresult r;

	if (mode == STATE_ASIDE)
		return CUDA_SUCCESS;
	if (mode == STATE_CLOSED) {
		/* The driver's own complaint comes first, as it would without us. */
		r = cuda.cuCtxGetDevice ? cuda.cuCtxGetDevice(&ordinal) : CUDA_ERROR_NOT_FOUND;
		return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
	}
	r = state_current_device(&device);
	if (r == CUDA_SUCCESS)
		r = charge_reserve(device, bytes, kind, ret_charge);
	if (r == CUDA_SUCCESS)
		ret_charge->current = current;
	return r;
}

void charge_put_right(struct device *device)
{
	static _Atomic uint64_t next_ns;
	int saved_errno = errno;

	if (!clock_is_due(&next_ns, CHARGE_LOOK_NS))
		return;
	parts_collect(device);
	parts_compare(device, PARTS_VIEW);
	charge_reap(device);
	errno = saved_errno;
}

void charge_reset_after_fork(void)
{
	reap_lock = (struct lock)LOCK_INIT;
	atomic_store(&charge_strays, 0);
	for (int i = 0; i < STATE_ORDINALS; i++)
		atomic_store(&unnamed[i], 0);
	for (int i = 0; i < OWN_WORDS + SHARED_WORDS; i++)
		words[i].word = (struct charge_word){.calls = 0};
}

void charge_commit(struct charge *charge, int64_t bytes)
{
	int64_t more = bytes - (int64_t)charge->units * REGION_UNIT_BYTES;
	struct device *d = charge->device;

	/* Of what goes the kind goes first: what is held and of no kind would be taken for a finding (reconcile.c). */
	if (bytes < 0)
		ledger_note(state.region.file, state.slot, d->entry, charge->kind, bytes);
	if (more > 0) {
		ledger_charge_anyway(
			state.region.file, state.slot, d->entry, ledger_units((uint64_t)more));
		show_to_watcher(d);
	} else if (more < 0) {
		ledger_uncharge(
			state.region.file, state.slot, d->entry, ledger_units((uint64_t)-more));
	}
	FAULT("charge: committed");
	if (bytes > 0)
		ledger_note(state.region.file, state.slot, d->entry, charge->kind, bytes);
	if (charge->is_under_way) {
		charge_leave(NULL);
		charge_unsettle(-(uint64_t)charge->unsettled * REGION_UNIT_BYTES);
	}
	*charge = (struct charge)CHARGE_NULL;
}

uint64_t charge_take(struct charge *charge)
{
	uint64_t bytes = (uint64_t)charge->units * REGION_UNIT_BYTES;

	charge_commit(charge, (int64_t)bytes);
	return bytes;
}

void charge_anyway(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	charge_commit(&(struct charge){.device = device, .kind = kind}, (int64_t)bytes);
}

void charge_give_back(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	charge_commit(&(struct charge){.device = device, .kind = kind}, -(int64_t)bytes);
}

void charge_hide(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	ledger_note(state.region.file, state.slot, device->entry, CHARGE_SHARED, (int64_t)bytes);
	ledger_note(state.region.file, state.slot, device->entry, kind, -(int64_t)bytes);
}

void charge_show(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	ledger_note(state.region.file, state.slot, device->entry, CHARGE_SHARED, -(int64_t)bytes);
	ledger_note(state.region.file, state.slot, device->entry, kind, (int64_t)bytes);
}

void charge_let_go(struct charge *charge, CUresult r)
{
	if (r == CUDA_SUCCESS)
		return;
	log_warn("memory stays counted until the process ends");
	charge_take(charge);
}

void charge_undo(struct charge *charge)
{
	if (charge->device)
		charge_commit(charge, 0);
}
