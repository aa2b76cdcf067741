/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of a process whose memory was moved to the host.
 *
 * The process may be killed at any moment, and its slot would then be reaped, or be another's, while its
 * words are changed here. So this holds the lock REGION_LOCK_EVICT of the slot, which whoever reaps or
 * claims it needs, too (slot.c).
 *
 * The process's threads run until they come to the driver. One that has charged waits there, and what it
 * charged is moved with the rest; one whose call had returned just before may still have to give
 * back, which is why the words must have come to rest.
 */
#include "region/evict.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "region/ledger.h"
#include "region/slot.h"

#define REST_NS	    5000000    /* unchanged for so long: a give-back takes less than 1 us */
#define REST_MAX_NS 1000000000 /* the longest wait for it */

static bool is_its(const struct region *region, const struct evict_process *p, int fd)
{
	const struct region_slot *own = &region->file->own.slots[p->slot];
	enum slot_owner owner;

	/* pairs with the release in publish() */
	if (atomic_load_explicit(&own->state, memory_order_acquire) != SLOT_LIVE)
		return false;
	/* relaxed: the acquire above made them visible */
	return atomic_load_explicit(&own->pid, memory_order_relaxed) == p->pid &&
	       atomic_load_explicit(&own->start_time, memory_order_relaxed) == p->start_time &&
	       slot_find_owner(fd, p->slot, own, &owner) == 0 && owner != SLOT_OWNER_GONE;
}

/* Takes the slot's lock for this; the process is its owner then. */
static int begin(const struct region *region, const struct evict_process *p, int *ret_fd)
{
	int fd, r;

	if (p->slot >= REGION_SLOTS)
		return EVICT_E_GONE;
	r = region_lock(region, REGION_LOCK_EVICT + p->slot, &fd);
	if (r < 0)
		return r;
	if (!is_its(region, p, fd)) {
		region_unlock(fd, REGION_LOCK_EVICT + p->slot);
		return EVICT_E_GONE;
	}
	*ret_fd = fd;
	return 0;
}

static bool read_words(const struct region_slot *slot, uint64_t ret_words[REGION_DEVICES])
{
	uint64_t on_their_way = 0;

	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		ret_words[d] = atomic_load(&slot->held[d]);
		on_their_way |= (uint32_t)ret_words[d];
	}
	return on_their_way == 0;
}

static bool comes_to_rest(const struct region_slot *slot)
{
	uint64_t before[REGION_DEVICES], after[REGION_DEVICES];
	uint64_t deadline_ns = clock_now_ns() + REST_MAX_NS;
	struct timespec pause = {.tv_nsec = REST_NS};

	do {
		bool is_quiet = read_words(slot, before);

		nanosleep(&pause, NULL);
		if (read_words(slot, after) && is_quiet &&
			memcmp(before, after, sizeof(before)) == 0)
			return true;
	} while (clock_now_ns() < deadline_ns);
	return false;
}

/* HAMi's monitor adds up total_bytes; the other figures stay, as those by kind do. */
static void note(struct region_file *f, unsigned slot, unsigned device, int64_t bytes)
{
	/* relaxed: HAMi's monitor reads without order */
	atomic_fetch_add_explicit(&f->hami.slots[slot].used[device].total_bytes, (uint64_t)bytes,
		memory_order_relaxed);
}

static void take(struct region_file *f, unsigned slot, unsigned device)
{
	struct region_slot *own = &f->own.slots[slot];
	uint64_t units = ledger_held_units(f, slot, device);
	uint64_t bytes = units * REGION_UNIT_BYTES;

	if (units == 0)
		return;
	/* First: who is killed in between leaves too much in the books, not too little. */
	atomic_fetch_add(&own->evicted_bytes[device], bytes);
	ledger_uncharge(f, slot, device, units);
	note(f, slot, device, -(int64_t)bytes);
}

static void charge(struct region_file *f, unsigned slot, unsigned device, uint64_t units)
{
	/* A word that was tampered with is not believed beyond what all cards of a machine have. */
	for (int i = 0; units > 0 && i < 16; i++) {
		uint64_t part = units < LEDGER_MAX_UNITS ? units : LEDGER_MAX_UNITS;

		ledger_charge_anyway(f, slot, device, part);
		units -= part;
	}
}

static void put_back(struct region_file *f, unsigned slot, unsigned device)
{
	struct region_slot *own = &f->own.slots[slot];
	uint64_t bytes = atomic_load(&own->evicted_bytes[device]);

	if (bytes == 0)
		return;
	/* First, as above. */
	charge(f, slot, device, ledger_units(bytes));
	atomic_store(&own->evicted_bytes[device], 0);
	note(f, slot, device, (int64_t)bytes);
}

static void set_status(struct region_file *f, unsigned slot, enum hami_status status)
{
	/* relaxed: HAMi's monitor reads without order */
	atomic_store_explicit(&f->hami.slots[slot].status, (int32_t)status, memory_order_relaxed);
}

int evict_take(struct region *region, const struct evict_process *process)
{
	struct region_file *f = region->file;
	int fd, r = begin(region, process, &fd);

	if (r != 0)
		return r;
	if (comes_to_rest(&f->own.slots[process->slot])) {
		for (unsigned d = 0; d < REGION_DEVICES; d++)
			take(f, process->slot, d);
		set_status(f, process->slot, HAMI_SUSPENDED);
	} else {
		r = EVICT_E_BUSY;
	}
	region_unlock(fd, REGION_LOCK_EVICT + process->slot);
	return r;
}

int evict_return(struct region *region, const struct evict_process *process)
{
	struct region_file *f = region->file;
	int fd, r = begin(region, process, &fd);

	if (r != 0)
		return r;
	for (unsigned d = 0; d < REGION_DEVICES; d++)
		put_back(f, process->slot, d);
	set_status(f, process->slot, HAMI_RUNNING);
	region_unlock(fd, REGION_LOCK_EVICT + process->slot);
	return 0;
}

bool evict_is_there(const struct region *region, const struct evict_process *process)
{
	_cleanup_fd_ int fd = -1;

	/* Where it cannot be looked at, it counts as there. */
	return process->slot < REGION_SLOTS &&
	       (region_reopen(region, &fd) < 0 || is_its(region, process, fd));
}

void evict_weigh(const struct region *region, const struct evict_process *process,
	uint64_t ret_bytes[REGION_DEVICES])
{
	const struct region_file *f = region->file;
	unsigned slot = process->slot;

	for (unsigned d = 0; d < REGION_DEVICES; d++)
		ret_bytes[d] = slot < REGION_SLOTS
				       ? ledger_held_bytes(f, slot, d) +
						 atomic_load(&f->own.slots[slot].evicted_bytes[d])
				       : 0;
}

static bool are_some_away(const struct region_file *f)
{
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		for (unsigned d = 0; d < REGION_DEVICES; d++)
			if (atomic_load(&f->own.slots[i].evicted_bytes[d]))
				return true;
	return false;
}

/* From process->slot on; numbers are those of the namespace that slot `self` is in. */
static bool find(
	const struct region_file *f, unsigned self, uint32_t pid, struct evict_process *process)
{
	/* relaxed: the caller's own */
	uint64_t namespace =
		atomic_load_explicit(&f->own.slots[self].pid_namespace, memory_order_relaxed);

	for (; process->slot < REGION_SLOTS; process->slot++) {
		const struct region_slot *own = &f->own.slots[process->slot];

		/* pairs with the release in publish() */
		if (atomic_load_explicit(&own->state, memory_order_acquire) != SLOT_LIVE ||
			/* relaxed, all: the acquire above made them visible */
			atomic_load_explicit(&own->pid, memory_order_relaxed) != pid ||
			atomic_load_explicit(&own->pid_namespace, memory_order_relaxed) !=
				namespace)
			continue;
		process->pid = pid;
		process->start_time = atomic_load_explicit(&own->start_time, memory_order_relaxed);
		return true;
	}
	return false;
}

static void count_changes(struct region_file *f)
{
	for (unsigned d = 0; d < REGION_DEVICES; d++)
		ledger_count_change(f, d);
}

int evict_hold(
	const struct region *region, unsigned self, uint32_t pid, struct evict_hold *ret_hold)
{
	struct evict_process process = {.slot = 0};
	int fd, r = EVICT_E_GONE;

	/* One that has ended may have had the same number. */
	for (; r == EVICT_E_GONE && find(region->file, self, pid, &process); process.slot++) {
		r = begin(region, &process, &fd);
		if (r == 0)
			*ret_hold = (struct evict_hold){.slot = process.slot, .fd = fd};
	}
	if (r != 0)
		return r;
	count_changes(region->file);
	/* Under the lock: whoever takes these books out later finds by the driver that it came back. */
	if (!are_some_away(region->file))
		return 0;
	evict_let_go(region, ret_hold);
	return EVICT_E_AWAY;
}

void evict_let_go(const struct region *region, const struct evict_hold *hold)
{
	if (hold->fd < 0)
		return;
	/* Under the lock: who sees no change since then has seen the lock (evict_stays()). */
	count_changes(region->file);
	region_unlock(hold->fd, REGION_LOCK_EVICT + hold->slot);
}

static bool has_managed(const struct region_file *f, unsigned device)
{
	unsigned high = atomic_load(&f->own.slot_high);

	for (unsigned i = 0; i < high && i < REGION_SLOTS; i++)
		/* relaxed: what comes later is a change of the ledger */
		if (atomic_load_explicit(&f->own.slots[i].kind_bytes[device][CHARGE_MANAGED],
			    memory_order_relaxed))
			return true;
	return false;
}

bool evict_stays(const struct region *region, unsigned device)
{
	_cleanup_fd_ int fd = -1;
	bool is_held = true;

	if (has_managed(region->file, device))
		return false;
	/* The only process that there ever was is checkpointed by no other one. */
	return atomic_load(&region->file->own.slot_high) <= 1 ||
	       (region_reopen(region, &fd) == 0 &&
		       file_range_is_locked(fd, REGION_LOCK_EVICT, REGION_SLOTS, &is_held) == 0 &&
		       !is_held);
}
